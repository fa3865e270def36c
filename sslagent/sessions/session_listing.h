/* session_listing.h: the sessions of a store as an operator asks for them: those that a filter lets through, one page
 * of them and how many there are. The store is walked in steps, none of which holds a lock or its thread for long, so
 * that handshakes do not notice. Nothing secret is copied.
 */
#ifndef CSSL_SSLAGENT_SESSION_LISTING_H
#define CSSL_SSLAGENT_SESSION_LISTING_H

#include "sslagent/sessions/session_filter.h"
#include "sslagent/sessions/store.h"

/* What it points to outlives the listing. */
struct session_query {
	struct session_filter filter;
	const uint8_t *after; /* only what stands behind this session in the order of ids; NULL: from the start */
	unsigned limit;       /* 0: they are only counted */
	size_t bytes_max;     /* of all rows' names and ids; the page ends earlier where it would exceed this */
	int (*is_counted_here)(const void *counting, const uint8_t *id); /* and nowhere else; NULL: all are */
	const void *counting;
};

struct listed_session {
	struct session_facts facts;
	uint32_t age_s, expires_s, hits;
	uint8_t client_certificate[CERTIFICATE_HASH_LEN];
	uint8_t client_certificate_len; /* 0: none was shown */
};

struct session_listing;

/* NULL: out of memory. */
struct session_listing *session_listing_create(struct store *s, const struct session_query *q, int64_t now_ms);
void session_listing_destroy(struct session_listing *l);

/* Some of the work. 1: there is more; 0: done; negative: it cannot be done. */
int session_listing_step(struct session_listing *l);

/* When it is done. Rows in the order of ids; *more: there are further ones behind them. */
enum session_listing_more { LISTING_ENDS, LISTING_GOES_ON };
const struct listed_session *session_listing_rows(
	const struct session_listing *l, size_t *count, enum session_listing_more *more);
/* How many the filter let through; with a limit, no more than were looked at. */
uint64_t session_listing_count(const struct session_listing *l);
/* Without a limit: of these, those that are counted here and nowhere else. */
uint64_t session_listing_counted(const struct session_listing *l);

#endif
