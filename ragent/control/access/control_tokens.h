/* control_tokens.h: the users of the control API over the network: bearer tokens (RFC 6750) with a name and a role. The
 * file has only their hashes (proto/control_token.h) in hex, one `name role hash` a line, so that a reader of the file
 * cannot use the API. A line `name role cn=COMMON NAME` gives the role to holders of a client certificate instead.
 */
#pragma once

#include <stddef.h>
#include <sys/socket.h>

#define CONTROL_TOKEN_NAME_MAX 63u
#define CONTROL_TOKENS_MAX     256u
#define CONTROL_CN_MAX         64u /* X.520 ub-common-name */

/* Each role includes the roles before it. */
enum control_role { CONTROL_ROLE_NONE, CONTROL_ROLE_READ, CONTROL_ROLE_OPERATE };

struct control_tokens;

/* A certificate's name comes in a PROXY header. CONTROL_NAMES_BELIEVED: only agents can have sent that header. */
enum control_names { CONTROL_NAMES_DOUBTED, CONTROL_NAMES_BELIEVED };

static inline enum control_names control_names_of(const struct sockaddr *control_address)
{
	return control_address->sa_family == AF_UNIX ? CONTROL_NAMES_BELIEVED : CONTROL_NAMES_DOUBTED;
}

/* For free(). NULL: @error names file, line, what was found and what was expected. It refuses a file that others can
 * write. With CONTROL_NAMES_DOUBTED it also refuses a line of a certificate. */
struct control_tokens *control_tokens_load(const char *path, enum control_names names, char *error, size_t error_cap);

/* The role of the token in an Authorization header (NULL: no such header). *name is valid as long as @t. Takes the same
 * time for every token, known or unknown. */
enum control_role control_tokens_role(const struct control_tokens *t, const char *authorization, const char **name);

/* The role of the holder of a verified client certificate with this common name (compared byte by byte; "" has none),
 * and *name as above. */
enum control_role control_tokens_certificate_role(
	const struct control_tokens *t, const char *common_name, const char **name);
