/* session_source.h: where the TLS side finds and shares sessions. It hides the cluster's replicated store behind a
 * small interface, so that tests run handshakes without a cluster. All calls come on worker threads; implementations
 * are thread-safe. */
#pragma once

#include "proto/sess_obj.h"

struct worker;

enum session_answer {
	SESSION_FOUND,    /* @out is a decoded object the caller destroys */
	SESSION_ABSENT,   /* not made by this cluster, unknown, expired, revoked, or its origin is dead: make a full
			     handshake */
	SESSION_ELSEWHERE /* its id passes the check, but it is not here (yet): park and pull */
};

/* 16-byte name, AES and HMAC keys for one ticket (unique per ticket: derived from a cluster key and the ticket's iv).
 */
struct ticket_key {
	uint8_t name[16];
	uint8_t cipher_key[32];
	uint8_t mac_key[32];
};

/* The family of a session that a client offers. */
struct offered_family {
	const uint8_t *id; /* FAMILY_ID_LEN */
	uint32_t age_s;
	const char *server_name;             /* or NULL */
	const struct client_address *client; /* of the full handshake; or NULL */
	/* The session itself. */
	uint16_t protocol_version, cipher_suite;
	const uint8_t *client_certificate;                      /* SHA-256 of its DER form; NULL: none */
	enum { OFFERED_FROM_STORE, OFFERED_IN_TICKET } carried; /* its age: known by the store, or session_age_s */
	uint32_t session_age_s;
};

struct session_source {
	const char *origin; /* this agent's name, for session_facts.origin; set before the first handshake */

	/* Ages and remaining times in @out are right at the return, on this agent's clock. */
	enum session_answer (*find)(struct session_source *s, const uint8_t *id, size_t id_len, struct sess_obj *out);

	/* A fresh id for a session made here. */
	void (*make_id)(struct session_source *s, uint8_t out[static SESSION_ID_LEN]);

	/* A session was made (by a full handshake, or with each TLS 1.3 ticket): store and broadcast. @obj is borrowed,
	 * complete except for the live part, and may be larger than SESS_OBJ allows (session_len > SESSION_DER_MAX):
	 * then refuse it. The bytes that announce the session to the client leave after the return. 0, or negative:
	 * refused (counted by the callee); the handshake goes on. */
	int (*share)(struct session_source *s, struct worker *w, const struct sess_obj *obj);

	/* Is the family revoked, or older than allowed? */
	bool (*family_revoked)(struct session_source *s, const struct offered_family *family);

	/* Key to seal a new TLS 1.2 ticket with (@name NULL), or the key of that name. @salt: the ticket's 16-byte iv.
	 * 0; CSSL_E_KEY_UNKNOWN. */
	int (*ticket_key)(
		struct session_source *s, const uint8_t *name, const uint8_t salt[static 16], struct ticket_key *out);

	/* Ask for an ELSEWHERE session; @done comes on @w exactly once, within the park time, and never during the
	 * call. */
	struct session_pull *(*pull)(struct session_source *s, struct worker *w,
		const uint8_t id[static SESSION_ID_LEN], void (*done)(void *ctx, enum session_answer answer),
		void *ctx);
	/* Cancel the pull: @done will not come. */
	void (*pull_cancel)(struct session_source *s, struct session_pull *p);
};
