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

/* Read the family of @session. 0; CSSL_E_NOT_FOUND: it has none, or not in this format. */
int session_family_read(SSL_SESSION *session, struct session_family *out);
/* 0 or CSSL_E_NO_MEMORY. */
int session_family_write(SSL_SESSION *session, const struct session_family *family);

/* Begin a new family at @now_s. The caller may fill in its client. */
void session_family_begin(struct session_family *out, uint64_t now_s);
/* The family that @facts describe, on this agent's clock. */
void session_family_from_facts(struct session_family *out, const struct session_facts *facts, uint64_t now_s);
/* 0 when the clock is before the family's beginning. */
uint32_t session_family_age_s(const struct session_family *family, uint64_t now_s);

#endif
