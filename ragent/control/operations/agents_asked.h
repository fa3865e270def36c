/* agents_asked.h: one question to agents, over the links of the first worker: to all agents, to one, or to one after
 * the other until one answers. It is a part of its own because many operations ask agents, and each only words the
 * question and the answer. It begins and ends on the main loop.
 */
#pragma once

#include "ragent/control/operations/gather.h"
#include "ragent/control/operations/operations.h"

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
	Cssl__LinkRequest *message;
	uint64_t ended;      /* connections, by a block */
	char own_error[256]; /* of a reload: why RAgent itself failed; "": it did not */
	enum { ASK_ALL, ASK_ONE, ASK_THAT } whom;
	unsigned first; /* for ASK_ONE: the first agent to ask; for ASK_THAT: the only one */
	unsigned count, next, waiting;
	struct agent_answer answers[];
};

/* On the main loop, with a copy of @message. NULL: out of memory, @r is answered. The caller starts it. */
struct agents_asked *asked_create(struct operations *o, struct control_request *r, const Cssl__LinkRequest *message,
	void (*answer)(struct agents_asked *a));
/* The same with the message @what, whose content is @part; NULL: it has none. */
struct agents_asked *asked_about(struct operations *o, struct control_request *r, Cssl__LinkRequest__WhatCase what,
	const ProtobufCMessage *part, void (*answer)(struct agents_asked *a));
void asked_start(struct agents_asked *a); /* NULL is legal */

const char *asked_name(const struct agents_asked *a, unsigned agent);
/* Why it is not the answer that was expected; NULL: it is. @a NULL: nobody answered. */
const char *asked_fault(const struct agent_answer *a, Cssl__LinkResponse__WhatCase expected);
/* ASK_ONE: the last answer, or NULL. */
const struct agent_answer *asked_last(const struct agents_asked *a);
