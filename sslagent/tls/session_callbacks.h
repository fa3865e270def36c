/* session_callbacks.h: OpenSSL's questions about sessions, answered from the session source, and its new sessions
 * shared through it. */
#ifndef CSSL_SSLAGENT_SESSION_CALLBACKS_H
#define CSSL_SSLAGENT_SESSION_CALLBACKS_H

#include "sslagent/tls/handshake_internal.h"

/* External cache only; ids of the source's making; lifetime of the listener. */
void session_callbacks_set(SSL_CTX *ctx, const struct tls_listener *l);

/* Ask the source, unless the last answer was for the same id. FOUND: h->found is filled. */
enum session_answer handshake_find_session(struct handshake *h, const uint8_t *id, size_t len);

/* May a session of @family made for @server_name be resumed in this handshake? 1 or 0. */
int handshake_may_resume(const struct handshake *h, const struct session_family *family, const char *server_name);

#endif
