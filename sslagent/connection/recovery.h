/* recovery.h: what an adopter does after the owner before it was lost (law 10). RAgent says how far the answer had
 * come and which client records may have reached the backend; what was in them, only who opens them knows. Two pure
 * decisions; the tables in recovery.c are the rule.
 */
#ifndef CSSL_SSLAGENT_RECOVERY_H
#define CSSL_SSLAGENT_RECOVERY_H

#include "conf/conf.h"
#include "proto/link.pb-c.h"
#include "sslagent/service/service.h"

enum recovery {
	RECOVERY_GO_ON,        /* nothing was cut: serve the client */
	RECOVERY_HEAR,         /* open what the lost agent had got, give it to nobody, and judge */
	RECOVERY_ASK_REST,     /* ask for the rest of the answer, and go on with it */
	RECOVERY_BACKEND_LOST, /* the one request may have been done: say so (502 in http), and end in order */
	RECOVERY_ALERT,        /* something is cut off: a fatal alert */
};

/* What was delivered of an answer. */
enum recovery_answer {
	RECOVERY_ANSWER_LOST,  /* nothing, or nothing that can go on */
	RECOVERY_ANSWER_KNOWN, /* a part, and how to ask for the rest (service.h: a note) */
};

struct recovery_facts {
	enum service_loss loss;
	enum conf_agent_loss on_loss;
	Cssl__ResponseState response;
	enum { RECOVERY_NOTHING_EXPOSED, RECOVERY_EXPOSED } exposed; /* did it get client records since? */
	enum recovery_answer answer;
};
enum recovery recovery_begin(const struct recovery_facts *f);

/* What was heard in them. */
struct recovery_heard {
	enum service_loss loss; /* cut: also where a service gave up */
	enum service_repeat repeat;
	unsigned outstanding;
	Cssl__Fate fate; /* of the lost agent */
	enum recovery_answer answer;
	enum { RECOVERY_HEARD_ANY, RECOVERY_HEARD_ITS_REQUEST } requests;
};
enum recovery recovery_judge(const struct recovery_heard *h); /* never RECOVERY_HEAR */

const char *recovery_name(enum recovery r);

#endif
