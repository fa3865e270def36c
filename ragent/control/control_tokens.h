/* control_tokens.h: who may use the control API over the network: bearer tokens (RFC 6750) with a name and a role.
 * The file has only their hashes (proto/control_token.h) in hex, one `name role hash` a line, so that who reads it can
 * do nothing with it.
 */
#ifndef CSSL_RAGENT_CONTROL_TOKENS_H
#define CSSL_RAGENT_CONTROL_TOKENS_H

#include <stddef.h>

#define CONTROL_TOKEN_NAME_MAX 63u
#define CONTROL_TOKENS_MAX     256u

/* Each may do what those before it may. */
enum control_role { CONTROL_ROLE_NONE, CONTROL_ROLE_READ, CONTROL_ROLE_OPERATE };

struct control_tokens;

/* NULL: @error names file, line, what was found and what was expected. A file that others can write is refused. */
struct control_tokens *control_tokens_load(const char *path, char *error, size_t error_cap);
void control_tokens_destroy(struct control_tokens *t);

/* The role of whom an Authorization header names, and *name, valid as long as @t; NULL for no such header. Takes the
 * same time whichever token it is and whether it is one. */
enum control_role control_tokens_role(const struct control_tokens *t, const char *authorization, const char **name);

/* For messages: "read". */
const char *control_role_name(enum control_role role);

#endif
