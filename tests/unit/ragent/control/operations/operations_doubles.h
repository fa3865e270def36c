/* operations_doubles.h: in place of the control socket, functions that note what a request is answered. */
#pragma once

#include "ragent/control/operations/operations.h"

extern struct answers_noted {
	unsigned answers;
	unsigned status;
	json_t *body;     /* of the last answer that was JSON; NULL: it failed */
	char *text;       /* of the last answer that was none */
	char reason[256]; /* of the last failure; "": it did not fail */
} got;

extern struct control_request *const request; /* never looked at */

/* Wait for the one answer; the next one may come then. */
void answered(void);
void answered_with(unsigned status);

/* What the answer has there, by names and numbers of elements: "agents.0.name"; "": the whole. */
const json_t *told(const char *path);
uint64_t told_integer(const char *path);
const char *told_text(const char *path); /* "": it has none */
size_t told_size(const char *path);      /* of an array or an object */

/* The request at @agent, whose answer the caller completes. */
Cssl__LinkRequest *request_at(int agent, Cssl__LinkResponse *answer);

#define FILTER(...) .filter = { PROTOBUF_C_MESSAGE_INIT(&cssl__session_filter__descriptor), __VA_ARGS__ }
