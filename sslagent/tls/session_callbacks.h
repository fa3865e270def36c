/* session_callbacks.h: OpenSSL's questions about sessions, answered from the session source, and its new sessions
 * shared through it. */
#ifndef CSSL_SSLAGENT_SESSION_CALLBACKS_H
#define CSSL_SSLAGENT_SESSION_CALLBACKS_H

#include "sslagent/tls/handshake_internal.h"

/* External cache only; ids of the source's making; lifetime of the listener. */
void session_callbacks_set(SSL_CTX *ctx, const struct tls_listener *l);

/* Ask the source, unless the last answer was for the same id. FOUND: h->found is filled. */
enum session_answer handshake_find_session(struct handshake *h, const uint8_t *id, size_t len);

/* May @session, of @family and made for @server_name, be resumed in this handshake? 1 or 0. */
int handshake_may_resume(
	struct handshake *h, const SSL_SESSION *session, const struct session_family *family, const char *server_name);

/* Without an extended master secret (RFC 7627) a TLS 1.2 session is not tied to its handshake: who sits between client
 * and server can make two of them that have the same secrets, and resume one in the place of the other. Such a session
 * is neither shared nor put into a ticket, so nobody can resume it. What OpenSSL does of the rest: it resumes no
 * session in a handshake with the extension that was made without it, and ends a handshake without it that offers one
 * made with it. 1 or 0. */
int handshake_makes_resumable(const struct handshake *h);

#endif
