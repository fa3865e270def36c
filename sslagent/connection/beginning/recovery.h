/* recovery.h: the decision of an adopter after the loss of the owner before it (law 10). RAgent tells how far the
 * answer had come and which client records may have reached the backend. Only an agent that opens these records
 * knows their contents. So there are two pure decisions; the tables in recovery.c are the rule.
 */
#pragma once

#include "conf/conf.h"
#include "proto/link.pb-c.h"
#include "sslagent/service/service.h"

enum recovery {
	RECOVERY_GO_ON,        /* nothing was cut: serve the client */
	RECOVERY_HEAR,         /* open the records that the lost agent had got, give them to no backend, and judge */
	RECOVERY_ASK_REST,     /* ask for the rest of the answer, and go on with it */
	RECOVERY_BACKEND_LOST, /* the one request may have been done: tell the client (502 in http), and end in order */
	RECOVERY_ALERT,        /* something is cut off: a fatal alert */
};

/* How much of an answer was delivered. */
enum recovery_answer {
	RECOVERY_ANSWER_LOST,  /* nothing, or an answer that cannot continue */
	RECOVERY_ANSWER_KNOWN, /* a part, and a note to ask for the rest (service.h) */
};

struct recovery_facts {
	enum service_loss loss;
	enum conf_agent_loss on_loss;
	Cssl__ResponseState response;
	enum { RECOVERY_NOTHING_EXPOSED, RECOVERY_EXPOSED } exposed; /* did it get client records since? */
	enum recovery_answer answer;
};
enum recovery recovery_begin(const struct recovery_facts *f);

/* The contents of these records. */
struct recovery_heard {
	enum service_loss loss; /* SERVICE_CUT_BY_LOSS also if a service gave up */
	enum service_repeat repeat;
	unsigned outstanding;
	Cssl__Fate fate; /* of the lost agent */
	enum recovery_answer answer;
	enum { RECOVERY_HEARD_ANY, RECOVERY_HEARD_ITS_REQUEST } requests;
};
enum recovery recovery_judge(const struct recovery_heard *h); /* never RECOVERY_HEAR */

const char *recovery_name(enum recovery r);
