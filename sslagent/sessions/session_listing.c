/* session_listing.c: a walk meets whole buckets, and the sessions of a bucket in any order. So a page is gathered,
 * sorted and cut. Cheap facts stand beside each session in the store; only a session that passes on these is decoded,
 * for its names.
 */
#include "sslagent/sessions/session_listing.h"

#include <stdlib.h>
#include <string.h>

#include "net/loop/timer.h"
#include "net/memory/array.h"
#include "proto/error.h"
#include "sslagent/sessions/store.h"

#define SEEN_PER_LOCK  256u /* sessions */
#define LOCKS_PER_STEP 12u
#define ROW_OVERHEAD   128u /* ids, numbers and tags of a row, for bytes_max */

#define PAUSE_MS 1u /* between the steps of listings; a step is some 0.3 ms */

static uint32_t listing_seconds(int64_t ms)
{
	return ms > 0 ? (uint32_t)(ms / 1000) : 0;
}

static size_t row_len(const struct session_facts *f)
{
	return ROW_OVERHEAD + strlen(f->server_name) + strlen(f->alpn) + strlen(f->listener) + strlen(f->origin);
}

static int listing_add_row(struct session_listing *l, const struct session *s, const struct session_seen *seen)
{
	size_t len;
	const uint8_t *encoded = session_encoded(s, &len);
	struct sess_obj obj;
	int r = array_make_room(&l->rows, &l->row_cap, l->row_count, sizeof *l->rows);

	if (!r)
		r = sess_obj_decode(encoded, len, &obj);
	if (r)
		return r;
	struct listed_session *row = &l->rows[l->row_count++];
	*row = (struct listed_session){
		.facts = obj.facts,
		.age_s = listing_seconds(l->now_ms - seen->made_ms),
		.expires_s = listing_seconds(s->shelved.expires_ms - l->now_ms),
		.hits = s->hits,
	};
	row->facts.family_age_s = listing_seconds(l->now_ms - seen->family_made_ms);
	if (seen->client_certificate) {
		memcpy(row->client_certificate, seen->client_certificate, CERTIFICATE_HASH_LEN);
		row->client_certificate_len = CERTIFICATE_HASH_LEN;
	}
	l->bytes += row_len(&row->facts);
	sess_obj_destroy(&obj);
	return 0;
}

/* One row more than wanted shows that there are more. A query that only counts (limit 0) has no rows. */
static bool listing_is_full(const struct session_listing *l)
{
	return l->row_count > l->query.limit || l->bytes > l->query.bytes_max;
}

static void listing_meet(void *ctx, const struct session *s)
{
	struct session_listing *l = ctx;
	const struct session_seen seen = session_seen(s);

	if (l->query.filter && !session_filter_passes(l->query.filter, &seen, l->now_ms))
		return;
	if (l->query.after && session_id_compare(s->id, l->query.after) <= 0)
		return;
	l->count++;
	if (l->query.limit == 0)
		l->counted += !l->query.is_counted_here || l->query.is_counted_here(l->query.counting, s->id);
	else if (!l->error)
		l->error = listing_add_row(l, s, &seen);
}

static enum walk listing_on_session(void *ctx, const struct shelved *o)
{
	struct session_listing *l = ctx;

	listing_meet(l, session_of(o));
	return ++l->seen % SEEN_PER_LOCK == 0 || listing_is_full(l) || l->error ? WALK_PAUSE : WALK_ON;
}

struct session_listing *session_listing_create(struct store *s, const struct session_query *q, int64_t now_ms)
{
	struct session_listing *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	l->store = s;
	l->query = *q;
	l->now_ms = now_ms;
	if (q->after)
		l->cursor = shelf_position(store_shelf(s), q->after);
	return l;
}

void session_listing_destroy(struct session_listing *l)
{
	if (!l)
		return;
	free(l->rows);
	free(l);
}

static int listing_compare(const void *a, const void *b)
{
	const struct listed_session *x = a, *y = b;

	return session_id_compare(x->facts.session_id, y->facts.session_id);
}

/* Cut the page to its limits; the first row stays at any length. */
static void listing_cut(struct session_listing *l)
{
	if (l->row_count > 1)
		qsort(l->rows, l->row_count, sizeof *l->rows, listing_compare);
	while (l->row_count > 1 && listing_is_full(l)) {
		l->bytes -= row_len(&l->rows[--l->row_count].facts);
		l->more = LISTING_GOES_ON;
	}
}

int session_listing_step(struct session_listing *l)
{
	const Cssl__SessionFilter *f = l->query.filter;
	bool more = !f || f->session_id.len == 0;

	if (!more)
		store_peek(l->store, f->session_id.data, l->now_ms, listing_meet, l);
	/* few locks in one step, and few sessions under each: handshakes want the same locks */
	for (unsigned i = 0; i < LOCKS_PER_STEP && more && !l->error && !listing_is_full(l); i++)
		more = shelf_walk(store_shelf(l->store), &l->cursor, l->now_ms, listing_on_session, l);
	if (l->error)
		return l->error;
	if (more && !listing_is_full(l))
		return 1;
	if (more)
		l->more = LISTING_GOES_ON;
	listing_cut(l);
	return 0;
}

/* --- their turns: a page does not wait for the end of a long count. One that ends with its first step, as most pages
 * do, has no pause --- */

struct listings {
	struct worker *worker;
	STAILQ_HEAD(, session_listing) waiting;
	struct timer *timer; /* NULL: none waits */
	enum { LISTINGS_OPEN, LISTINGS_CLOSED } state;
};

static void stop_timer(struct listings *all)
{
	timer_stop(all->timer);
	all->timer = NULL;
}

static struct session_listing *listings_take_first(struct listings *all)
{
	struct session_listing *l = STAILQ_FIRST(&all->waiting);

	STAILQ_REMOVE_HEAD(&all->waiting, next);
	return l;
}

static void listings_on_turn(void *ctx);

static void wait_turn(struct listings *all, struct session_listing *l)
{
	if (!all->timer)
		all->timer = timer_start(all->worker, listings_on_turn, all, PAUSE_MS, PAUSE_MS);
	if (all->timer)
		STAILQ_INSERT_TAIL(&all->waiting, l, next);
	else
		l->done(l, CSSL_E_NO_MEMORY);
}

static void listings_step(struct listings *all, struct session_listing *l)
{
	const int result = session_listing_step(l);

	if (result > 0)
		wait_turn(all, l);
	else
		l->done(l, result);
}

static void listings_on_turn(void *ctx)
{
	struct listings *all = ctx;

	if (!STAILQ_EMPTY(&all->waiting))
		listings_step(all, listings_take_first(all));
	if (STAILQ_EMPTY(&all->waiting))
		stop_timer(all);
}

struct listings *listings_create(struct worker *w)
{
	struct listings *all = calloc(1, sizeof *all);

	if (!all)
		return NULL;
	all->worker = w;
	STAILQ_INIT(&all->waiting);
	return all;
}

void listings_close(struct listings *all)
{
	all->state = LISTINGS_CLOSED;
	stop_timer(all);
	while (!STAILQ_EMPTY(&all->waiting)) {
		struct session_listing *l = listings_take_first(all);
		l->done(l, CSSL_E_STATE);
	}
}

void listings_destroy(struct listings *all)
{
	free(all);
}

void listings_add(struct listings *all, struct session_listing *l)
{
	if (all->state == LISTINGS_CLOSED)
		l->done(l, CSSL_E_STATE);
	else if (!STAILQ_EMPTY(&all->waiting))
		wait_turn(all, l);
	else
		listings_step(all, l);
}
