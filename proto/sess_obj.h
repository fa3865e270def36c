/* sess_obj.h: SESS_OBJ as C values, and its import and export. sess_obj.proto has each field's meaning.
 *
 * Import parses into a local value and checks format, lengths, ranges and that nothing is left over; only then the
 * caller applies it, all or nothing. Every release reads the next format before any release writes it.
 */
#ifndef CSSL_PROTO_SESS_OBJ_H
#define CSSL_PROTO_SESS_OBJ_H

#include <stddef.h>
#include <stdint.h>

#include "proto/cipher_suite.h"
#include "proto/session_id.h"

#define SESS_OBJ_FORMAT          2u
#define SESS_OBJ_FORMAT_MAX_READ 3u /* format 3 only adds optional fields */
#define SESS_OBJ_FORMAT_DATED    2u /* the first whose live parts say when they were made, and whether at a freeze */

#ifdef CSSL_TEST_POINTS
/* From now on this process writes as the next release might: its format, and a field that this one does not know. */
void sess_obj_write_next_format(void);
#endif

#define CONNECTION_ID_LEN      16u
#define ADOPT_TOKEN_LEN        16u
#define FAMILY_ID_LEN          16u
#define TRAFFIC_SECRET_MAX     48u
#define AEAD_KEY_MAX           32u
#define AEAD_IV_LEN            12u
#define NAME_MAX_LEN           255u
#define SESSION_DER_MAX        24576u /* with a large client certificate; larger ones are not shared, and counted */
#define CERTIFICATE_MAX        SESSION_DER_MAX
#define SESSION_LIFETIME_MAX_S 604800u /* RFC 8446 4.6.1 */
#define RANDOM_LEN             32u
#define SESS_OBJ_LEN_MAX       61440u /* encoded; a longer one is refused unread */

struct connection_id {
	uint8_t bytes[CONNECTION_ID_LEN];
};

struct client_address {
	uint8_t bytes[16];
	uint8_t len; /* 4 or 16; 0: unknown */
};

/* Key material of one direction. TLS 1.3: @secret (its length is the suite's hash length), key and iv follow from it.
 * TLS 1.2: @key and @iv (4 bytes salt for AES-GCM, 12 for ChaCha20), no secret. */
struct direction_keys {
	uint8_t secret[TRAFFIC_SECRET_MAX];
	uint8_t key[AEAD_KEY_MAX];
	uint8_t iv[AEAD_IV_LEN];
	uint8_t secret_len, key_len, iv_len;
};

/* What exporters need (RFC 8446 7.5, RFC 5705); carried only where a listener wants them. */
struct random_values {
	uint8_t server[RANDOM_LEN], client[RANDOM_LEN];
	uint8_t secret[TRAFFIC_SECRET_MAX]; /* TLS 1.3: exporter_secret; TLS 1.2: master_secret */
	uint8_t len;                        /* of each random: 0 (not carried) or RANDOM_LEN */
	uint8_t secret_len;                 /* 0, or hash length; TLS 1.2: 48 */
};

/* The live part. Holds key material: wipe with live_part_wipe(). */
struct live_part {
	struct connection_id connection;
	uint16_t epoch;
	uint16_t max_fragment; /* 64..2^14; 0: 2^14 */
	uint32_t read_generation, write_generation;
	uint64_t read_sequence, write_sequence; /* below 2^48 in TLS 1.2, below 2^64 - 1 in TLS 1.3 */
	struct direction_keys client_write, server_write;
	struct random_values randoms;
	uint8_t record_nonce[8]; /* R, TLS 1.2 AES-GCM; else not carried */
	uint32_t remaining_s;
	enum { KEY_UPDATE_NOT_OWED, KEY_UPDATE_OWED } key_update;
	/* What format 1 does not have: there the token is all zero, and nothing proves where its owner stopped. */
	uint8_t token[ADOPT_TOKEN_LEN]; /* random for each export; RAgent shows it to prove that it was given this one
					 */
	enum { EXPORT_WHILE_OWNED, EXPORT_AT_FREEZE } exported;
	int64_t made_ms; /* on the clock that the agents share; 0: not known */
};

/* Facts that hold for a session and every connection on it. Strings are terminated. */
struct session_facts {
	uint16_t protocol_version;
	uint16_t cipher_suite;
	uint8_t session_id[SESSION_ID_LEN];
	uint8_t session_id_len; /* 0 (no session was made; then there is no resumption part) or SESSION_ID_LEN */
	uint8_t family_id[FAMILY_ID_LEN];
	uint32_t family_age_s;
	char origin[64];   /* not empty */
	char listener[64]; /* not empty */
	char server_name[NAME_MAX_LEN + 1];
	char alpn[NAME_MAX_LEN + 1];
	struct client_address client;
	int64_t verify_result;
	/* where the client's certificate was shown last: in the full handshake of the family, or in this connection's
	 * own */
	enum { CERTIFICATE_IN_SESSION, CERTIFICATE_IN_CONNECTION } certificate_seen;
	uint8_t context[32]; /* session id context */
	uint8_t context_len;
};

/* A decoded SESS_OBJ: facts with a resumption part, a live part, both, or (as an owner keeps them) neither. Pointers
 * are into memory it owns; free with sess_obj_destroy(). */
struct sess_obj {
	struct session_facts facts;
	const uint8_t *certificate; /* leaf of the client, DER; NULL without */
	size_t certificate_len;
	const uint8_t *session; /* i2d_SSL_SESSION; NULL: no resumption part */
	size_t session_len;
	uint32_t session_remaining_s;
	struct live_part *live; /* NULL: no live part */
	void *memory;           /* owned; NULL when the fields were filled in by hand */
};

/* Bytes needed, or a negative error when a field is out of range. */
ptrdiff_t sess_obj_encoded_len(const struct sess_obj *o);

/* Encode into @out; bytes written, or negative. @out then holds key material if o->live is set. */
ptrdiff_t sess_obj_encode(const struct sess_obj *o, uint8_t *out, size_t cap);

/* 0: @out is filled and owns memory (one allocation of what the parts need). Negative: nothing to free.
 * CSSL_E_VERSION: a format we do not read. CSSL_E_TRUNCATED: not a protobuf message. CSSL_E_TYPE: version and suite
 * unknown or not of each other. CSSL_E_TRAILING: unknown fields in a format we write, or wrote (later formats may have
 * some).
 * CSSL_E_RANGE, CSSL_E_TOO_LONG. */
int sess_obj_decode(const uint8_t *in, size_t len, struct sess_obj *out);

/* Wipes and frees what decode allocated; legal on a zeroed object. */
void sess_obj_destroy(struct sess_obj *o);

int live_part_has_token(const struct live_part *l); /* 1 or 0 */
void live_part_wipe(struct live_part *l);

#endif
