/* session_listing.c: a walk meets whole buckets, and the sessions of a bucket in any order. So a page is gathered,
 * sorted and cut. Cheap facts stand beside each session in the store; only a session that passes on these is decoded,
 * for its names.
 */
#include "sslagent/sessions/session_listing.h"

#include <stdlib.h>
#include <string.h>

#include "net/array.h"
#include "proto/error.h"

#define SEEN_PER_LOCK  256u /* sessions */
#define LOCKS_PER_STEP 12u
#define ROW_OVERHEAD   128u /* ids, numbers and tags of a row, for bytes_max */

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

static int is_behind(const struct session_listing *l, const uint8_t *id)
{
	return !l->query.after || session_id_compare(id, l->query.after) > 0;
}

static size_t row_len(const struct session_facts *f)
{
	return ROW_OVERHEAD + strlen(f->server_name) + strlen(f->alpn) + strlen(f->listener) + strlen(f->origin);
}

static int add_row(struct session_listing *l, const struct session *s, const struct session_seen *seen)
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
		.age_s = seconds(l->now_ms - seen->made_ms),
		.expires_s = seconds(s->shelved.expires_ms - l->now_ms),
		.hits = s->hits,
	};
	row->facts.family_age_s = seconds(l->now_ms - seen->family_made_ms);
	if (seen->client_certificate) {
		memcpy(row->client_certificate, seen->client_certificate, CERTIFICATE_HASH_LEN);
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

static void meet(void *ctx, const struct session *s)
{
	struct session_listing *l = ctx;
	const struct session_seen seen = session_seen(s);

	if ((l->query.filter && !session_filter_passes(l->query.filter, &seen, l->now_ms)) || !is_behind(l, s->id))
		return;
	l->count++;
	if (l->query.limit == 0)
		l->counted += !l->query.is_counted_here || l->query.is_counted_here(l->query.counting, s->id);
	else if (!l->error)
		l->error = add_row(l, s, &seen);
}

static enum walk on_session(void *ctx, const struct shelved *o)
{
	struct session_listing *l = ctx;

	meet(l, session_of(o));
	return ++l->seen % SEEN_PER_LOCK == 0 || (l->query.limit > 0 && is_full(l)) || l->error ? WALK_PAUSE : WALK_ON;
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
	const Cssl__SessionFilter *f = l->query.filter;
	int more = !f || f->session_id.len == 0;

	if (!more)
		store_peek(l->store, f->session_id.data, l->now_ms, meet, l);
	for (unsigned i = 0; i < LOCKS_PER_STEP && more && !l->error && !(l->query.limit > 0 && is_full(l)); i++)
		more = shelf_walk(store_shelf(l->store), &l->cursor, l->now_ms, on_session, l);
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
