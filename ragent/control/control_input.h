/* control_input.h: reads path, query and body of a request. Each reader returns 1, or 0 after it told the client what
 * is wrong.
 */
#ifndef CSSL_RAGENT_CONTROL_INPUT_H
#define CSSL_RAGENT_CONTROL_INPUT_H

#include "ragent/control/operations.h"

/* @segment: that of the path in the place of the placeholder. */
typedef int reader(struct exchange *e, const char *segment, struct control_input *in);

reader input_nothing; /* an order without a word: the body is empty, or {} */
reader input_connection, input_connections, input_end, input_move, input_rest;
reader input_block, input_drain, input_weight, input_log_level;
/* control_input_sessions.c */
reader input_session, input_sessions, input_session_count, input_revoke;

/* For these. NULL: the query has no such name. */
const char *input_argument(const struct exchange *e, const char *name);
bool input_hex(const char *text, uint8_t *out, size_t len);
int input_limit(struct exchange *e, unsigned *out);
/* An address is a network with one address. */
bool input_net(const char *text, struct address_net *out);
/* Digits only. */
bool input_seconds(const char *text, uint32_t max, uint32_t *out);

#endif
