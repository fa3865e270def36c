/* session_maker.h: SESS_OBJs for tests of what carries them: what is inside is made up, but keeps the rules. */
#pragma once

#include "proto/sess_obj.h"

/* Pointers go into the struct itself; it must not move. */
struct made_session {
	struct sess_obj obj;
	struct live_part live;
	uint8_t der[SESSION_DER_MAX];
};

struct session_wish {
	const uint8_t *id;        /* NULL: random, not one of ours */
	const uint8_t *family_id; /* NULL: random */
	const char *origin, *server_name;
	const char *client;   /* "192.0.2.1"; NULL: none */
	size_t der_len;       /* 0: 135 */
	uint32_t remaining_s; /* 0: 3600 */
	uint32_t family_age_s;
	uint16_t cipher_suite;          /* of TLS 1.3; 0: TLS_AES_128_GCM_SHA256 */
	const char *client_certificate; /* some text in its place; NULL: none */
};

void session_make(struct made_session *s, const struct session_wish *wish);

/* A live part and no session. */
struct live_wish {
	struct connection_id connection;
	uint16_t epoch;
	uint32_t read_generation, write_generation;
	uint32_t remaining_s; /* 0: 3600 */
	int64_t exported_ms;
};
void live_make(struct made_session *s, const struct live_wish *wish);
