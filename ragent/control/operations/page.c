/* page.c: keeps the lowest @limit + 1 ids; the one above the limit shows that there are more. */
#include "ragent/control/operations/page.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

/* --- query --- */

static int by_id(const struct connection_id *a, const struct connection_id *b)
{
	return memcmp(a->bytes, b->bytes, CONNECTION_ID_LEN);
}

static bool page_same(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

bool page_matches(const struct connection *c, const struct control_query *q)
{
	struct connection_description d;

	if (q->ids == QUERY_ONE && by_id(connection_identity(c), &q->id) != 0)
		return false;
	if (q->ids == QUERY_BEHIND && by_id(connection_identity(c), &q->id) <= 0)
		return false;
	if (!q->agent && !q->listener && q->client.len == 0)
		return true;
	connection_describe(c, &d); /* it costs too much to be made of every connection for a page by id */
	return (!q->agent || page_same(d.owner, q->agent)) && (!q->listener || page_same(d.listener, q->listener)) &&
	       (q->client.len == 0 || address_net_has(&q->client, (const struct sockaddr *)&d.client));
}

/* --- the lowest ids --- */

struct lowest {
	const struct connection **at; /* room for twice @cap */
	size_t count, cap;
	const struct connection *bound; /* this one and those above it are too high; NULL: none is */
};

static int pointer_order(const void *a, const void *b)
{
	return by_id(connection_identity(*(const struct connection *const *)a),
		connection_identity(*(const struct connection *const *)b));
}

/* The others go. */
static void lowest_keep(struct lowest *l)
{
	qsort(l->at, l->count, sizeof *l->at, pointer_order);
	l->count = l->count < l->cap ? l->count : l->cap;
}

static void lowest_offer(struct lowest *l, const struct connection *c)
{
	if (l->bound && by_id(connection_identity(c), connection_identity(l->bound)) >= 0)
		return;
	l->at[l->count++] = c;
	if (l->count < 2 * l->cap)
		return;
	lowest_keep(l);
	l->bound = l->at[l->cap - 1];
}

/* --- page --- */

static int row_order(const void *a, const void *b)
{
	return by_id(&((const struct connection_description *)a)->id, &((const struct connection_description *)b)->id);
}

/* The connection may be gone when the row is read, so its strings are copied. */
static int describe_for_good(const struct connection *c, struct connection_description *row)
{
	connection_describe(c, row);
	if (!row->server_name)
		return 0;
	row->server_name = strdup(row->server_name);
	row->alpn = strdup(row->alpn);
	return row->server_name && row->alpn ? 0 : CSSL_E_NO_MEMORY;
}

static const char *const cause_names[] = {
#define X(NAME, name) [OWNERSHIP_##NAME] = name,
	OWNERSHIP_CAUSES(X)
#undef X
};

static int add_history(const struct ragent_worker *rw, struct connection_description *row)
{
	struct ownership found[OWNERSHIPS_LISTED];
	const size_t count = ownerships_of(rw->home.ownerships, &row->id, found);
	struct ownership_description *history = calloc(count + 1, sizeof *history);

	if (!history)
		return CSSL_E_NO_MEMORY;
	for (size_t i = 0; i < count; i++)
		history[i] = (struct ownership_description){
			.agent = found[i].agent == NO_AGENT ? NULL
							    : agents_name(rw->home.shared->agents, found[i].agent),
			.cause = cause_names[found[i].cause],
			.epoch = found[i].epoch,
			.ago_ms = worker_now_ms(rw->home.worker) - found[i].since_ms,
			.pause_us = found[i].pause_us,
		};
	row->history = history;
	row->history_count = count;
	return 0;
}

static struct page *page_of(const struct lowest *l, unsigned limit)
{
	struct page *p = calloc(1, sizeof *p + l->count * sizeof p->rows[0]);
	int r = 0;

	if (!p)
		return NULL;
	for (; r == 0 && p->count < l->count; p->count++)
		r = describe_for_good(l->at[p->count], &p->rows[p->count]);
	if (r < 0) {
		page_destroy(p);
		return NULL;
	}
	p->more = p->count > limit ? PAGE_GOES_ON : PAGE_IS_LAST;
	return p;
}

struct page *page_create(const struct ragent_worker *rw, const struct control_query *q)
{
	struct lowest l = { .cap = (size_t)q->limit + 1 };

	l.at = calloc(2 * l.cap, sizeof *l.at);
	if (!l.at)
		return NULL;
	for (const struct connection *c = rw->home.connections; c; c = connection_next(c))
		if (page_matches(c, q))
			lowest_offer(&l, c);
	lowest_keep(&l);
	struct page *p = page_of(&l, q->limit);
	free(l.at);
	if (!p || q->ids != QUERY_ONE || p->count == 0 || add_history(rw, &p->rows[0]) == 0)
		return p;
	page_destroy(p);
	return NULL;
}

static void free_row(struct connection_description *row)
{
	free((char *)row->server_name);
	free((char *)row->alpn);
	free((void *)row->history);
}

void page_destroy(struct page *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->count; i++)
		free_row(&p->rows[i]);
	free(p);
}

struct page *page_merge(struct gather *g, unsigned limit)
{
	size_t count = 0;
	unsigned missing = 0;

	for (unsigned i = 0; i < g->count; i++) {
		const struct page *p = g->parts[i].result;
		missing += !p;
		count += p ? p->count : 0;
	}
	struct page *all = missing ? NULL : calloc(1, sizeof *all + count * sizeof all->rows[0]);
	for (unsigned i = 0; i < g->count; i++) {
		struct page *p = g->parts[i].result;
		if (all && p->count) {
			memcpy(&all->rows[all->count], p->rows, p->count * sizeof p->rows[0]);
			all->count += p->count;
			p->count = 0; /* the merged page owns the strings now */
		}
		page_destroy(p);
	}
	if (!all)
		return NULL;
	qsort(all->rows, all->count, sizeof all->rows[0], row_order);
	if (all->count > limit)
		all->more = PAGE_GOES_ON;
	for (; all->count > limit; all->count--)
		free_row(&all->rows[all->count - 1]);
	return all;
}
