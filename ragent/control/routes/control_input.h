/* control_input.h: reads the pieces that several routes take. It is a part of its own because each piece has one form
 * and one error, wherever it stands. Each reader that gets the exchange returns false after it told the client what is
 * wrong: the error names the piece, the found value and the expected one.
 */
#pragma once

#include "ragent/control/http/control_exchange.h"
#include "ragent/control/operations/operations.h"

/* NULL: the query has no such name. */
const char *input_argument(const struct exchange *e, const char *name);
/* As many bytes as @len, in hexadecimal digits. */
bool input_hex(const char *text, uint8_t *out, size_t len);
/* Digits only. */
bool input_seconds(const char *text, uint32_t max, uint32_t *out);
/* An address is a network with one address. */
bool input_net(const char *text, struct address_net *out);
/* `limit` of the query. */
bool input_limit(struct exchange *e, unsigned *out);
/* The body into @in. It has only members of @names, of which NULL is the end. */
bool input_body(struct exchange *e, struct control_input *in, const char *const *names);
#define INPUT_BODY(e, in, ...) input_body(e, in, (const char *const[]){ __VA_ARGS__, NULL })
/* The reader of a route for an order without a word: the body is empty, or {}. */
bool input_nothing(struct exchange *e, const char *segment, struct control_input *in);
