/* session_filter.h: selects the sessions that pass every criterion of an operator. Listings apply it to stored
 * sessions; tombstones apply it also to tickets and to later sessions. Pure. */
#ifndef CSSL_SSLAGENT_SESSION_FILTER_H
#define CSSL_SSLAGENT_SESSION_FILTER_H

#include "net/address.h"
#include "proto/link.pb-c.h"
#include "proto/sess_obj.h"

#define CERTIFICATE_HASH_LEN 32u /* SHA-256 of the DER form */

/* A field that is NULL or 0 is no criterion. */
struct session_filter {
	const uint8_t *session_id;
	const char *server_name; /* in upper or lower case */
	struct address_net client;
	uint16_t protocol_version, cipher_suite;
	uint32_t min_age_s, max_age_s;
	const uint8_t *family_id;          /* FAMILY_ID_LEN */
	const uint8_t *client_certificate; /* CERTIFICATE_HASH_LEN */
};

/* A session as a filter sees it. An unknown field is NULL, 0 or AGE_UNKNOWN, and fails each criterion about it. */
#define AGE_UNKNOWN INT64_MIN
struct session_seen {
	const char *server_name;
	const struct client_address *client;
	uint16_t protocol_version, cipher_suite;
	int64_t age_ms; /* below 0: 0 */
	const uint8_t *family_id, *client_certificate;
};

/* 1 or 0. The caller compares the session id. */
int session_filter_passes(const struct session_filter *f, const struct session_seen *s);

/* Convert a filter to its message, or back. Pointers of @out point into the source. read: 0 or CSSL_E_RANGE. */
int session_filter_read(const Cssl__SessionFilter *m, struct session_filter *out);
void session_filter_write(const struct session_filter *f, Cssl__SessionFilter *out);

/* A filter with copies of all its values. It must not move in memory. */
struct session_filter_kept {
	struct session_filter filter;
	char server_name[NAME_MAX_LEN + 1];
	uint8_t session_id[SESSION_ID_LEN], family_id[FAMILY_ID_LEN], client_certificate[CERTIFICATE_HASH_LEN];
};
/* CSSL_E_RANGE: a name that is too long, or a filter without a criterion. */
int session_filter_keep(struct session_filter_kept *out, const struct session_filter *f);
int session_filter_equal(const struct session_filter *a, const struct session_filter *b); /* 1 or 0 */

/* SHA-256 of a client's certificate. */
void certificate_hash(const uint8_t *der, size_t len, uint8_t out[static CERTIFICATE_HASH_LEN]);

#endif
