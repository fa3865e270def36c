/* sess_obj.h: SESS_OBJ as C values, encoded and decoded. sess_obj.proto explains each field.
 *
 * Decoding checks format, lengths and ranges, and that no byte is left over, before the caller sees a value. Each
 * release can read the format that the next release will write.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/cipher_suite.h"
#include "proto/ids.h"
#include "proto/ja4.h"
#include "proto/session_id.h"

#define SESS_OBJ_FORMAT      1u
#define SESS_OBJ_FORMAT_NEXT 2u /* only adds optional fields; this release reads it */

#ifdef CSSL_TEST_POINTS
/* From now on this process writes like a next release: with format 2 and a field that this release does not know. */
void sess_obj_write_next_format(void);
#endif

#define TRAFFIC_SECRET_MAX     48u
#define AEAD_KEY_MAX           32u
#define NAME_MAX_LEN           255u
#define SESSION_DER_MAX        24576u /* room for a large client certificate; larger sessions are counted and not shared */
#define CERTIFICATE_MAX        SESSION_DER_MAX
#define SESSION_LIFETIME_MAX_S 604800u /* RFC 8446 4.6.1 */
#define RANDOM_LEN             32u
#define SESS_OBJ_LEN_MAX       61440u /* encoded; a longer one is refused before it is parsed */

/* Key material of one direction. TLS 1.3: @secret, as long as the suite's hash; key and IV derive from it. TLS 1.2:
 * @key and @iv (4 bytes of salt for AES-GCM, 12 for ChaCha20), no secret. */
struct direction_keys {
	uint8_t secret[TRAFFIC_SECRET_MAX];
	uint8_t key[AEAD_KEY_MAX];
	uint8_t iv[AEAD_IV_LEN];
	uint8_t secret_len, key_len, iv_len;
};

/* The secrets of exporters (RFC 8446 7.5, RFC 5705). Only set if the listener allows exporters. */
struct random_values {
	uint8_t server[RANDOM_LEN], client[RANDOM_LEN];
	uint8_t secret[TRAFFIC_SECRET_MAX]; /* TLS 1.3: exporter_secret; TLS 1.2: master_secret */
	uint8_t len;                        /* of each random: 0 (not set) or RANDOM_LEN */
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
	uint8_t record_nonce[8]; /* R, of TLS 1.2 with AES-GCM only */
	uint32_t remaining_s;
	enum { KEY_UPDATE_NOT_OWED, KEY_UPDATE_OWED } key_update;
	/* Random for each export; RAgent shows it to prove that it got this export. All zero in a sealed copy. */
	uint8_t token[ADOPT_TOKEN_LEN];
	enum { EXPORT_WHILE_OWNED, EXPORT_AT_FREEZE } exported;
	int64_t made_ms; /* on the clock that the agents share; 0: not known */
};

/* Facts about a session and each connection that uses it. Strings are terminated. */
struct session_facts {
	uint16_t protocol_version;
	uint16_t cipher_suite;
	uint8_t session_id[SESSION_ID_LEN];
	uint8_t session_id_len; /* SESSION_ID_LEN; 0: no session was made, so there is no resumption part */
	uint8_t family_id[FAMILY_ID_LEN];
	uint32_t family_age_s;
	char origin[64];   /* not empty */
	char listener[64]; /* not empty */
	char server_name[NAME_MAX_LEN + 1];
	char alpn[NAME_MAX_LEN + 1];
	struct client_address client;
	int64_t verify_result;
	/* where the client showed its certificate last: in the full handshake of the family, or in this connection */
	enum { CERTIFICATE_IN_SESSION, CERTIFICATE_IN_CONNECTION } certificate_seen;
	struct ja4 ja4;      /* of a connection; all zero in what only a resumption needs */
	uint8_t context[32]; /* session id context */
	uint8_t context_len;
};

/* A decoded SESS_OBJ: facts with a resumption part, a live part, both, or neither (an owner keeps such ones). It owns
 * the memory behind its pointers; free it with sess_obj_destroy(). */
struct sess_obj {
	struct session_facts facts;
	const uint8_t *certificate; /* leaf of the client, DER; NULL without */
	size_t certificate_len;
	const uint8_t *session; /* i2d_SSL_SESSION; NULL: no resumption part */
	size_t session_len;
	uint32_t session_remaining_s;
	struct live_part *live; /* NULL: no live part */
	void *memory;           /* owned; NULL if the caller filled in the fields */
};

/* The length of the encoded object in bytes, or negative: a field is out of range. */
ptrdiff_t sess_obj_encoded_len(const struct sess_obj *o);

/* Encode into @out. Bytes written, or negative. If o->live is set, @out then holds key material. */
ptrdiff_t sess_obj_encode(const struct sess_obj *o, uint8_t *out, size_t cap);

/* 0: @out is filled and owns memory. Negative: nothing to free. CSSL_E_VERSION: this release does not read the format.
 * CSSL_E_TRUNCATED: not a protobuf message. CSSL_E_TYPE: TLS version or suite unknown, or the two do not belong
 * together. CSSL_E_TRAILING: unknown fields, which only a later format may have. CSSL_E_RANGE, CSSL_E_TOO_LONG. */
int sess_obj_decode(const uint8_t *in, size_t len, struct sess_obj *out);

/* Wipe and free what decoding allocated. Legal on a zeroed object. */
void sess_obj_destroy(struct sess_obj *o);

/* sess_obj_check.c: the rules for the values, checked before encoding and after decoding. 0; CSSL_E_TYPE: TLS version
 * or suite unknown, or the two do not belong together; CSSL_E_TOO_LONG; CSSL_E_RANGE. */
int sess_obj_check(const struct sess_obj *o);

bool live_part_has_token(const struct live_part *l);
void live_part_wipe(struct live_part *l);
