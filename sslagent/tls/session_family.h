/* session_family.h: a full handshake and all sessions resumed from it: an id, the time of the full handshake and the
 * address of its client. They live in the session's ticket appdata, which OpenSSL carries in i2d, in tickets, and into
 * the sessions it makes from a resumed one: so children inherit them. */
#ifndef CSSL_SSLAGENT_SESSION_FAMILY_H
#define CSSL_SSLAGENT_SESSION_FAMILY_H

#include <openssl/ssl.h>

#include "proto/sess_obj.h"

struct session_family {
	uint8_t id[FAMILY_ID_LEN];
	uint64_t since_s; /* on this agent's wall clock */
	struct client_address client;
	enum { FAMILY_UNKNOWN, FAMILY_KNOWN } state;
};

/* What @session says. 0; CSSL_E_NOT_FOUND: nothing, or not ours. */
int session_family_read(SSL_SESSION *session, struct session_family *out);
/* 0 or CSSL_E_NO_MEMORY. */
int session_family_write(SSL_SESSION *session, const struct session_family *family);

/* A new one, of now, of a client that the caller may fill in. 0 or CSSL_E_CRYPTO. */
int session_family_begin(struct session_family *out, uint64_t now_s);
/* One that is @age_s old. */
void session_family_from_facts(struct session_family *out, const struct session_facts *facts, uint64_t now_s);
/* 0 where the clock stands before it. */
uint32_t session_family_age_s(const struct session_family *family, uint64_t now_s);

#endif
