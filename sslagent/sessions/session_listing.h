/* session_listing.h: lists the sessions of a store for an operator: one page of the sessions that pass a filter, and
 * their number. It walks the store in short steps. No step holds a lock or its thread for long, so handshakes are not
 * delayed. It copies no secret.
 */
#pragma once

#include <sys/queue.h>

#include "proto/sess_obj.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/session_filter.h"

struct store;
struct worker;

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

/* The asker sets @done; the rest is filled in. Read the results when it is done. */
struct session_listing {
	STAILQ_ENTRY(session_listing) next;
	/* By listings_add(), on the loop, exactly once, possibly from within it; 0, or negative: the listing failed. */
	void (*done)(struct session_listing *l, int error);
	void *ctx; /* the asker's */
	struct store *store;
	struct session_query query;
	int64_t now_ms;
	uint64_t cursor;
	struct listed_session *rows; /* in the order of ids */
	size_t row_count, row_cap, bytes;
	enum { LISTING_ENDS, LISTING_GOES_ON } more; /* are there more rows? */
	uint64_t count;   /* sessions that passed the filter; with a limit, only of those that were visited */
	uint64_t counted; /* without a limit: those of them that are counted here and by no other agent */
	unsigned seen;
	int error;
};

/* NULL: out of memory. */
struct session_listing *session_listing_create(struct store *s, const struct session_query *q, int64_t now_ms);
void session_listing_destroy(struct session_listing *l);

/* Do a part of the work. 1: there is more; 0: done; negative: failed. */
int session_listing_step(struct session_listing *l);

/* The listings under way, all on one loop: a step of one listing, then a pause. With any number of operators and any
 * size of the store they take only a part of one CPU. They never take a long turn of the loop, because handshakes and
 * broadcasts need it. */
struct listings;

/* On the loop of @w from now on. NULL: out of memory. */
struct listings *listings_create(struct worker *w);
/* Listings under way end with CSSL_E_STATE, and later ones too. */
void listings_close(struct listings *all);
void listings_destroy(struct listings *all); /* closed, or nothing was ever added; NULL is legal */

void listings_add(struct listings *all, struct session_listing *l);
