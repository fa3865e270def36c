/* session_listing.c: a walk meets whole buckets, and the sessions of a bucket in any order. So a page is gathered,
 * sorted and cut. Cheap facts stand beside each session in the store; only a session that passes on these is decoded,
 * for its names.
 */
#include "sslagent/sessions/session_listing.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

#define SEEN_PER_LOCK  256u /* sessions */
#define LOCKS_PER_STEP 12u
#define ROW_OVERHEAD   128u /* ids, numbers and tags of a row, for bytes_max */
#define ROWS_AT_FIRST  64u

struct session_listing {
	struct store *store;
	struct session_query query;
	int64_t now_ms;
	uint64_t cursor, count, counted;
	struct listed_session *rows;
	size_t row_count, row_cap, bytes;
	unsigned seen;
	int error;
	enum session_listing_more more;
};

static uint32_t seconds(int64_t ms)
{
	return ms > 0 ? (uint32_t)(ms / 1000) : 0;
}

static int passes(const struct session_listing *l, const struct stored *s)
{
	const struct session_seen seen = stored_seen(s, l->now_ms);

	return session_filter_passes(&l->query.filter, &seen);
}

static int is_behind(const struct session_listing *l, const uint8_t *id)
{
	return !l->query.after || session_id_compare(id, l->query.after) > 0;
}

static int make_room(struct session_listing *l)
{
	const size_t cap = l->row_cap ? 2 * l->row_cap : ROWS_AT_FIRST;
	struct listed_session *grown;

	if (l->row_count < l->row_cap)
		return 0;
	grown = reallocarray(l->rows, cap, sizeof *grown);
	if (!grown)
		return CSSL_E_NO_MEMORY;
	l->rows = grown;
	l->row_cap = cap;
	return 0;
}

static size_t row_len(const struct session_facts *f)
{
	return ROW_OVERHEAD + strlen(f->server_name) + strlen(f->alpn) + strlen(f->listener) + strlen(f->origin);
}

static int add_row(struct session_listing *l, const struct stored *s)
{
	struct sess_obj obj;
	int r = make_room(l);

	if (!r)
		r = sess_obj_decode(s->encoded, s->len, &obj);
	if (r)
		return r;
	struct listed_session *row = &l->rows[l->row_count++];
	*row = (struct listed_session){
		.facts = obj.facts,
		.age_s = seconds(l->now_ms - s->made_ms),
		.expires_s = seconds(s->expires_ms - l->now_ms),
		.hits = s->hits,
	};
	row->facts.family_age_s = seconds(l->now_ms - s->family_made_ms);
	if (s->client_certificate) {
		memcpy(row->client_certificate, s->client_certificate, CERTIFICATE_HASH_LEN);
		row->client_certificate_len = CERTIFICATE_HASH_LEN;
	}
	l->bytes += row_len(&row->facts);
	sess_obj_destroy(&obj);
	return 0;
}

/* One row more than wanted shows that there are more. */
static int is_full(const struct session_listing *l)
{
	return l->row_count > l->query.limit || l->bytes > l->query.bytes_max;
}

static void meet(struct session_listing *l, const struct stored *s)
{
	if (!passes(l, s) || !is_behind(l, s->id))
		return;
	l->count++;
	if (l->query.limit == 0)
		l->counted += !l->query.is_counted_here || l->query.is_counted_here(l->query.counting, s->id);
	else if (!l->error)
		l->error = add_row(l, s);
}

static enum store_walk on_session(void *ctx, const struct stored *s)
{
	struct session_listing *l = ctx;

	meet(l, s);
	return ++l->seen % SEEN_PER_LOCK == 0 || (l->query.limit > 0 && is_full(l)) || l->error ? STORE_PAUSE
												: STORE_GO_ON;
}

static void on_the_one(void *ctx, const struct stored *s)
{
	meet(ctx, s);
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
		l->cursor = store_position(s, q->after);
	return l;
}

void session_listing_destroy(struct session_listing *l)
{
	if (!l)
		return;
	free(l->rows);
	free(l);
}

static int compare(const void *a, const void *b)
{
	const struct listed_session *x = a, *y = b;

	return session_id_compare(x->facts.session_id, y->facts.session_id);
}

/* Cut the page to its limits; the first row stays at any length. */
static void cut(struct session_listing *l)
{
	if (l->row_count > 1)
		qsort(l->rows, l->row_count, sizeof *l->rows, compare);
	while (l->row_count > 1 && is_full(l)) {
		l->bytes -= row_len(&l->rows[--l->row_count].facts);
		l->more = LISTING_GOES_ON;
	}
}

int session_listing_step(struct session_listing *l)
{
	const uint8_t *only = l->query.filter.session_id;
	int more = 1;

	if (only) {
		store_peek(l->store, only, l->now_ms, on_the_one, l);
		more = 0;
	}
	for (unsigned i = 0; i < LOCKS_PER_STEP && more && !l->error && !(l->query.limit > 0 && is_full(l)); i++)
		more = store_walk(l->store, &l->cursor, l->now_ms, on_session, l);
	if (l->error)
		return l->error;
	if (more && !(l->query.limit > 0 && is_full(l)))
		return 1;
	if (more)
		l->more = LISTING_GOES_ON;
	cut(l);
	return 0;
}

const struct listed_session *session_listing_rows(
	const struct session_listing *l, size_t *count, enum session_listing_more *more)
{
	*count = l->row_count;
	*more = l->more;
	return l->rows;
}

uint64_t session_listing_count(const struct session_listing *l)
{
	return l->count;
}

uint64_t session_listing_counted(const struct session_listing *l)
{
	return l->counted;
}
