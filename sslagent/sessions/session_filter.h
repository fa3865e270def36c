/* session_filter.h: selects the sessions that pass every criterion of an operator (SessionFilter of link.proto).
 * Listings apply it to stored sessions; tombstones apply it also to tickets and to later sessions. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/ids.h"
#include "proto/link.pb-c.h"

#define CERTIFICATE_HASH_LEN 32u /* SHA-256 of the DER form */

/* A session as filters and tombstones see it. An unknown field is NULL, 0 or AGE_UNKNOWN: it fails each criterion about
 * it, and no tombstone hits it. */
#define AGE_UNKNOWN INT64_MIN
struct session_seen {
	const uint8_t *id, *family_id;
	const char *server_name;
	const struct client_address *client;
	uint16_t protocol_version, cipher_suite;
	int64_t made_ms, family_made_ms;
	const uint8_t *client_certificate; /* its hash */
};

/* 0, or CSSL_E_RANGE: a filter of another agent or of RAgent may not be applied. */
int session_filter_check(const Cssl__SessionFilter *f);
/* The age is that at @at_ms, and one below 0 is 0. The caller compares the session id. */
bool session_filter_passes(const Cssl__SessionFilter *f, const struct session_seen *s, int64_t at_ms);

/* A copy, in the same form for equal filters: cssl__session_filter__free_unpacked(). NULL: out of memory. */
Cssl__SessionFilter *session_filter_copy(const Cssl__SessionFilter *f);
bool session_filter_equal(const Cssl__SessionFilter *a, const Cssl__SessionFilter *b); /* of two copies */

/* SHA-256 of a client's certificate. */
void session_filter_hash(const uint8_t *der, size_t len, uint8_t out[static CERTIFICATE_HASH_LEN]);
