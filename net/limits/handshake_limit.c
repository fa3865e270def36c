/* handshake_limit.c: a hash table of sources, each with its handshakes by age; and lists of the sources by their
 * number of handshakes. So the handshake that gives way is found without a search.
 */
#include "net/limits/handshake_limit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/limits/admission.h"
#include "net/memory/container_of.h"
#include "net/memory/table.h"
#include "proto/error.h"

#define ROWS_MAX       65536u
#define IPV4_LEN       4u
#define IPV6_LEN       16u
#define SITE_LEN       6u               /* bytes of an IPv6 /48 */
#define SUBNET_LEN     8u               /* and of a /64 */
#define SOURCE_KEY_LEN (1 + SUBNET_LEN) /* length of the prefix or address; that, and zeros */

struct handshake_source {
	struct table_link link;
	/* What gives way and takes turns: an IPv4 address, or a /48. A /64 is only counted. */
	TAILQ_ENTRY(handshake_source) in;     /* those with the same number of handshakes, the oldest first */
	TAILQ_HEAD(, handshake_place) places; /* the oldest first */
	uint32_t count, most;
	uint32_t number;
	uint8_t key[SOURCE_KEY_LEN];
};

TAILQ_HEAD(by_count, handshake_source);

struct handshake_limit {
	uint32_t total, per_source; /* 0: none */
	uint32_t count, highest;    /* highest: the largest number that any source has */
	uint32_t sources_made;
	size_t row_count;
	struct table sources;
	struct by_count *rows; /* one row for each number; the last row also has all larger ones */
	uint8_t hash_key[crypto_shorthash_KEYBYTES]; /* so that sources cannot choose their bucket */
};

struct handshake_limit *handshake_limit_create(uint32_t total, uint32_t per_source)
{
	struct handshake_limit *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	l->total = total;
	l->per_source = per_source;
	l->row_count = (size_t)(total < ROWS_MAX ? total : ROWS_MAX) + 2;
	l->rows = calloc(l->row_count, sizeof *l->rows);
	if (!l->rows) {
		free(l);
		return NULL;
	}
	for (size_t i = 0; i < l->row_count; i++)
		TAILQ_INIT(&l->rows[i]);
	crypto_shorthash_keygen(l->hash_key);
	return l;
}

void handshake_limit_destroy(struct handshake_limit *l)
{
	if (!l)
		return;
	assert(l->count == 0);
	table_clear(&l->sources);
	free(l->rows);
	free(l);
}

uint32_t handshake_place_source(const struct handshake_place *p)
{
	return p->source->number;
}

uint32_t handshake_limit_count(const struct handshake_limit *l)
{
	return l->count;
}

/* --- sources --- */

static struct by_count *row_of(struct handshake_limit *l, uint32_t count)
{
	return &l->rows[count < l->row_count ? count : l->row_count - 1];
}

/* Count one more (@by 1) or one less (-1). */
static void recount(struct handshake_limit *l, struct handshake_source *s, int by)
{
	TAILQ_REMOVE(row_of(l, s->count), s, in);
	s->count += (uint32_t)by;
	l->count += (uint32_t)by;
	TAILQ_INSERT_TAIL(row_of(l, s->count), s, in);
	if (s->count > l->highest)
		l->highest = s->count;
	while (l->highest > 0 && TAILQ_EMPTY(row_of(l, l->highest)))
		l->highest--;
}

/* The source with most handshakes; of several, the one that reached the number first. NULL: there are no handshakes. */
static struct handshake_source *greediest(struct handshake_limit *l)
{
	return l->highest ? TAILQ_FIRST(row_of(l, l->highest)) : NULL;
}

static void key_of(const struct client_address *from, uint8_t prefix_len, uint8_t out[static SOURCE_KEY_LEN])
{
	memset(out, 0, SOURCE_KEY_LEN);
	out[0] = prefix_len;
	memcpy(out + 1, from->bytes, prefix_len);
}

static struct handshake_source *source_find(struct handshake_limit *l, const uint8_t *key, uint64_t hash)
{
	struct table_link *link = table_first(&l->sources, hash);

	while (link && memcmp(container_of(link, struct handshake_source, link)->key, key, SOURCE_KEY_LEN) != 0)
		link = table_next(link);
	return link ? container_of(link, struct handshake_source, link) : NULL;
}

/* A site has room for several of its subnets, and leaves some of all places to others. */
static uint32_t share_of(const struct handshake_limit *l, uint8_t prefix_len)
{
	uint64_t share = l->per_source;

	if (share == 0)
		return UINT32_MAX;
	if (prefix_len == SITE_LEN) {
		const uint64_t most = (uint64_t)l->total * 3 / 4;
		share *= ADMISSION_OF_SITE;
		if (l->total && share > most)
			share = most > l->per_source ? most : l->per_source;
	}
	return share > UINT32_MAX ? UINT32_MAX : (uint32_t)share;
}

/* Found or made. NULL: out of memory. */
static struct handshake_source *source_of(
	struct handshake_limit *l, const struct client_address *from, uint8_t prefix_len)
{
	uint8_t key[SOURCE_KEY_LEN];
	uint64_t hash;

	key_of(from, prefix_len, key);
	crypto_shorthash((uint8_t *)&hash, key, sizeof key, l->hash_key);
	struct handshake_source *s = source_find(l, key, hash);
	if (s)
		return s;
	s = calloc(1, sizeof *s);
	if (!s || table_add(&l->sources, &s->link, hash) < 0) {
		free(s);
		return NULL;
	}
	memcpy(s->key, key, sizeof s->key);
	s->most = share_of(l, prefix_len);
	TAILQ_INIT(&s->places);
	if (prefix_len != SUBNET_LEN) {
		s->number = l->sources_made++;
		TAILQ_INSERT_TAIL(row_of(l, 0), s, in);
	}
	return s;
}

static void forget_if_unused(struct handshake_limit *l, struct handshake_source *s)
{
	if (!s || s->count > 0)
		return;
	if (s->key[0] != SUBNET_LEN)
		TAILQ_REMOVE(row_of(l, 0), s, in);
	table_remove(&l->sources, &s->link);
	free(s);
}

/* Where a newcomer counts. */
struct membership {
	struct handshake_source *source, *subnet; /* subnet NULL: not IPv6 */
};

static void forget_unused(struct handshake_limit *l, const struct membership *m)
{
	forget_if_unused(l, m->subnet);
	forget_if_unused(l, m->source);
}

/* 0 or CSSL_E_NO_MEMORY. */
static int find_membership(struct handshake_limit *l, const struct client_address *from, struct membership *out)
{
	const uint8_t len = from->len == IPV6_LEN ? SITE_LEN : from->len == IPV4_LEN ? IPV4_LEN : 0;

	*out = (struct membership){ .source = source_of(l, from, len) };
	if (out->source && len == SITE_LEN)
		out->subnet = source_of(l, from, SUBNET_LEN);
	if (out->source && (out->subnet || len != SITE_LEN))
		return 0;
	forget_unused(l, out);
	return CSSL_E_NO_MEMORY;
}

/* --- places --- */

static void take_place(
	struct handshake_limit *l, const struct membership *m, struct handshake_place *p, uint64_t since_ms)
{
	struct handshake_source *s = m->source;

	p->source = s;
	p->subnet = m->subnet;
	p->since_ms = since_ms;
	TAILQ_INSERT_TAIL(&s->places, p, in);
	recount(l, s, 1);
	if (p->subnet)
		p->subnet->count++;
}

void handshake_limit_leave(struct handshake_limit *l, struct handshake_place *p)
{
	struct handshake_source *s = p->source;

	if (!s)
		return;
	TAILQ_REMOVE(&s->places, p, in);
	struct membership m = { s, p->subnet };
	p->source = p->subnet = NULL;
	recount(l, s, -1);
	if (m.subnet)
		m.subnet->count--;
	forget_unused(l, &m);
}

/* The handshake that gives way to a newcomer of @s; NULL: the newcomer is refused. */
static struct handshake_place *loser_to(struct handshake_limit *l, const struct handshake_source *s, uint64_t now_ms)
{
	const struct handshake_source *most = greediest(l);

	if (!most || most->count < s->count + 1)
		return NULL;
	if (most->count == s->count + 1 && now_ms - TAILQ_FIRST(&most->places)->since_ms < HANDSHAKE_GRACE_MS)
		return NULL;
	return TAILQ_FIRST(&most->places);
}

int handshake_limit_enter(struct handshake_limit *l, struct handshake_place *p, const struct client_address *from,
	uint64_t now_ms, struct handshake_place **loser)
{
	struct membership m;

	*loser = NULL;
	if (find_membership(l, from, &m) < 0)
		return CSSL_E_NO_MEMORY;
	bool is_full = m.source->count >= m.source->most || (m.subnet && m.subnet->count >= m.subnet->most);
	if (!is_full && l->total && l->count >= l->total) {
		*loser = loser_to(l, m.source, now_ms);
		is_full = !*loser;
	}
	if (is_full) {
		forget_unused(l, &m);
		return CSSL_E_FULL;
	}
	take_place(l, &m, p, now_ms);
	if (*loser)
		handshake_limit_leave(l, *loser);
	return 0;
}

int handshake_limit_bring(
	struct handshake_limit *l, struct handshake_place *p, const struct client_address *from, uint64_t since_ms)
{
	struct membership m;

	if (find_membership(l, from, &m) < 0)
		return CSSL_E_NO_MEMORY;
	take_place(l, &m, p, since_ms);
	return 0;
}
