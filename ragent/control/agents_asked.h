/* agents_asked.h: one question to agents, over the links of the first worker: to all agents, to one, or to one after
 * the other until one answers. It begins and ends on the main loop.
 */
#ifndef CSSL_RAGENT_AGENTS_ASKED_H
#define CSSL_RAGENT_AGENTS_ASKED_H

#include "ragent/control/operations.h"

/* The answer of one agent. */
struct agent_answer {
	Cssl__LinkResponse *response; /* owned; NULL: @error has the reason */
	enum { NOT_ASKED, ASKED } asked;
	char error[160];
};

struct agents_asked {
	struct operations *operations;
	struct control_request *request;
	struct gather_part *part;
	void (*answer)(struct agents_asked *a); /* on the main loop; then @a is freed */
	Cssl__LinkRequest message;              /* its pointers point to the fields below */
	union {
		Cssl__LinkRequest__Counters counters;
		Cssl__LinkRequest__Rotate rotate;
		Cssl__LinkRequest__Reload reload;
		Cssl__LinkRequest__Revoke revoke;
		Cssl__LinkRequest__Sessions sessions;
		Cssl__LinkRequest__SessionCount session_count;
		Cssl__LinkRequest__LogLevel log_level;
		uint8_t blocked[BLOCKED_PACKED_MAX];
	};
	Cssl__SessionFilter filter;
	uint8_t session_id[SESSION_ID_LEN];
	uint8_t family_id[FAMILY_ID_LEN], client_certificate[CONTROL_CERTIFICATE_LEN]; /* of the filter */
	struct address_net client;
	char name[NAME_MAX_LEN + 1]; /* of the filter or the revocation: a server; or a log level */
	uint64_t ended;              /* connections, by a block */
	char own_error[256];         /* of a reload: why RAgent itself failed; "": it did not */
	enum { ASK_ALL, ASK_ONE, ASK_THAT } whom;
	unsigned first; /* for ASK_ONE: the first agent to ask; for ASK_THAT: the only one */
	unsigned count, next, waiting;
	struct agent_answer answers[];
};

/* On the main loop. NULL: out of memory, @r is answered. The caller fills in the message @what, then starts it. */
struct agents_asked *asked_create(struct operations *o, struct control_request *r, Cssl__LinkRequest__WhatCase what,
	void (*answer)(struct agents_asked *a));
void asked_start(struct agents_asked *a); /* NULL is legal */

/* Set the filter of @a, with copies of the data that @q points to; the id of a session. */
void asked_filter(struct agents_asked *a, const struct control_session_query *q);
ProtobufCBinaryData asked_session(struct agents_asked *a, const uint8_t id[static SESSION_ID_LEN]);

const char *asked_name(const struct agents_asked *a, unsigned agent);
/* Why it is not the answer that was expected; NULL: it is. @a NULL: nobody answered. */
const char *asked_fault(const struct agent_answer *a, Cssl__LinkResponse__WhatCase expected);
/* ASK_ONE: the last answer, or NULL. */
const struct agent_answer *asked_last(const struct agents_asked *a);

#endif
