/* session_listing.h: lists the sessions of a store for an operator: one page of the sessions that pass a filter, and
 * their number. It walks the store in short steps. No step holds a lock or its thread for long, so handshakes are not
 * delayed. It copies no secret.
 */
#ifndef CSSL_SSLAGENT_SESSION_LISTING_H
#define CSSL_SSLAGENT_SESSION_LISTING_H

#include "sslagent/sessions/session_filter.h"
#include "sslagent/sessions/store.h"

/* Its pointers must stay valid until the listing is destroyed. */
struct session_query {
	const Cssl__SessionFilter *filter; /* checked; NULL: all */
	const uint8_t *after;              /* begin behind this session in the order of ids; NULL: from the start */
	unsigned limit;                    /* 0: only count the sessions */
	size_t bytes_max;                  /* of all rows' names and ids; the page ends before it would exceed this */
	/* 1: this agent counts the session @id, and no other agent does. NULL: count all sessions */
	int (*is_counted_here)(const void *counting, const uint8_t *id);
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

/* Do a part of the work. 1: there is more; 0: done; negative: failed. */
int session_listing_step(struct session_listing *l);

/* Call it when the listing is done. Rows in the order of ids; *more: whether more rows follow. */
enum session_listing_more { LISTING_ENDS, LISTING_GOES_ON };
const struct listed_session *session_listing_rows(
	const struct session_listing *l, size_t *count, enum session_listing_more *more);
/* How many sessions passed the filter; with a limit, only of those that were visited. */
uint64_t session_listing_count(const struct session_listing *l);
/* Without a limit: how many of these are counted here and by no other agent. */
uint64_t session_listing_counted(const struct session_listing *l);

#endif
