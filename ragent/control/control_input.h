/* control_input.h: read pieces of path, query and body as values. These functions tell the client about errors. */
#ifndef CSSL_RAGENT_CONTROL_INPUT_H
#define CSSL_RAGENT_CONTROL_INPUT_H

#include "ragent/control/control_handlers.h"

/* A question, or an order: the call of the provider, if the request @fits. The file has a struct input for what it
 * reads; its `body` is owned. */
#define HANDLE(name, fits, form, ...)                                                                                  \
	void handle_##name(struct exchange *e, const struct query *q, const char *id)                                  \
	{                                                                                                              \
		struct input in = { .body = NULL };                                                                    \
		void *ctx;                                                                                             \
		const struct control_provider *p = exchange_provider(e, &ctx);                                         \
		struct control_request *r = (fits) ? exchange_ask(e, form) : NULL;                                     \
		if (r)                                                                                                 \
			p->__VA_ARGS__;                                                                                \
		json_decref(in.body);                                                                                  \
	}

/* 0 or -1; these do not tell the client. */
int input_hex(const char *text, uint8_t *out, size_t len);
int input_net_read(const char *text, struct address_net *out); /* as input_net() */

/* 0, or -1 after it told the client that @what is wrong. */
int input_id(struct exchange *e, const char *what, const char *text, struct connection_id *out);
int input_session_id(struct exchange *e, const char *what, const char *text, uint8_t out[static SESSION_ID_LEN]);
/* NULL is the default. */
int input_limit(struct exchange *e, const char *text, unsigned *out);
/* A single address is a network with one address. */
int input_net(struct exchange *e, const char *what, const char *text, struct address_net *out);
/* NULL is 0. */
int input_seconds(struct exchange *e, const char *what, const char *text, uint32_t max, uint32_t *out);

/* 1: the body has only these members (the parser refuses a member twice); 0 after it told the client. */
int input_members(struct exchange *e, const json_t *body, const char *const *names, unsigned count);
int input_body_empty(struct exchange *e);

#endif
