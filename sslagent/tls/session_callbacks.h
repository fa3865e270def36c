/* session_callbacks.h: OpenSSL's questions about sessions, answered from the session source. It also shares new
 * sessions through that source. */
#ifndef CSSL_SSLAGENT_SESSION_CALLBACKS_H
#define CSSL_SSLAGENT_SESSION_CALLBACKS_H

#include "sslagent/tls/handshake_internal.h"

/* Use an external cache only, ids of the session source, and the lifetime of the listener. */
void session_callbacks_set(SSL_CTX *ctx, const struct tls_listener *l);

/* Ask the source, unless the last answer was for the same id. FOUND: h->found is filled. */
enum session_answer handshake_find_session(struct handshake *h, const uint8_t *id, size_t len);

/* May @session, of @family and made for @server_name, be resumed in this handshake? 1 or 0. */
int handshake_may_resume(
	struct handshake *h, const SSL_SESSION *session, const struct session_family *family, const char *server_name);

/* Without an extended master secret (RFC 7627) a TLS 1.2 session is not tied to its handshake: an attacker between
 * client and server can make two sessions with the same secrets, and resume one in the place of the other. So such a
 * session is neither shared nor put into a ticket, and no client can resume it. OpenSSL does the rest: in a handshake
 * with the extension it resumes no session that was made without it. A handshake without the extension that offers a
 * session made with it fails. 1 or 0. */
int handshake_makes_resumable(const struct handshake *h);

#endif
