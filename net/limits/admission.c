/* admission.c: a table of sources under one lock. A connection takes the lock twice in its life, and only if
 * there is a limit per source.
 */
#include "net/limits/admission.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/memory/container_of.h"
#include "net/memory/slabs.h"
#include "net/memory/table.h"
#include "proto/error.h"

/* A row says which addresses count together, and how many times the limit of one source they have. */
static const struct width {
	uint8_t address_len; /* of the addresses to which the row applies */
	uint8_t prefix_len;  /* in bytes */
	uint32_t share;
} widths[] = {
	{ 4, 4, 1 },
	{ 16, 8, 1 },
	{ 16, 6, ADMISSION_OF_SITE },
};
#define WIDTHS     (sizeof widths / sizeof widths[0])
#define PREFIX_MAX 8u

struct source {
	struct table_link link;
	uint8_t bytes[1 + PREFIX_MAX]; /* number of its width, prefix, zeros */
	uint32_t count;
};

struct admission {
	_Atomic uint32_t total_max, per_source_max;
	_Atomic uint32_t total;
	pthread_mutex_t lock;
	struct table sources;
	struct slabs blocks;                         /* of them: malloc would take half as much again for each */
	uint8_t hash_key[crypto_shorthash_KEYBYTES]; /* so that sources cannot choose their bucket */
};

struct admission *admission_create(uint32_t total, uint32_t per_source)
{
	struct admission *a = calloc(1, sizeof *a);

	if (!a)
		return NULL;
	a->total_max = total;
	a->per_source_max = per_source;
	slabs_init(&a->blocks, sizeof(struct source));
	if (pthread_mutex_init(&a->lock, NULL) != 0) {
		free(a);
		return NULL;
	}
	crypto_shorthash_keygen(a->hash_key);
	return a;
}

void admission_destroy(struct admission *a)
{
	if (!a)
		return;
	for (struct table_link *l = table_walk(&a->sources, NULL), *next; l; l = next) {
		next = table_walk(&a->sources, l);
		slabs_give(&a->blocks, container_of(l, struct source, link));
	}
	table_clear(&a->sources);
	slabs_clear(&a->blocks);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

void admission_set_limits(struct admission *a, uint32_t total, uint32_t per_source)
{
	a->total_max = total;
	a->per_source_max = per_source;
}

int admission_enter(struct admission *a)
{
	return admission_enter_beyond(a, 0);
}

int admission_enter_beyond(struct admission *a, uint32_t above)
{
	const uint64_t before = atomic_fetch_add(&a->total, 1), max = a->total_max;

	if (max == 0 || before < max + above)
		return 0;
	atomic_fetch_sub(&a->total, 1);
	return CSSL_E_FULL;
}

void admission_bring(struct admission *a)
{
	atomic_fetch_add(&a->total, 1);
}

void admission_leave(struct admission *a)
{
	atomic_fetch_sub(&a->total, 1);
}

uint32_t admission_total(const struct admission *a)
{
	return atomic_load(&((struct admission *)a)->total);
}

/* The source of that width that @from belongs to: 1, or 0: none. */
static bool source_key(const struct client_address *from, unsigned width, struct source *out)
{
	if (from->len != widths[width].address_len)
		return false;
	memset(out->bytes, 0, sizeof out->bytes);
	out->bytes[0] = (uint8_t)width;
	memcpy(out->bytes + 1, from->bytes, widths[width].prefix_len);
	return true;
}

/* NULL: there is none. */
static struct source *source_find(const struct admission *a, const struct source *key, uint64_t *hash)
{
	crypto_shorthash((uint8_t *)hash, key->bytes, sizeof key->bytes, a->hash_key);
	struct table_link *l = table_first(&a->sources, *hash);
	while (l && memcmp(container_of(l, struct source, link)->bytes, key->bytes, sizeof key->bytes) != 0)
		l = table_next(l);
	return l ? container_of(l, struct source, link) : NULL;
}

static int enter_locked(struct admission *a, const struct source *key, uint32_t max)
{
	uint64_t hash;
	struct source *s = source_find(a, key, &hash);

	if (s && s->count >= max)
		return CSSL_E_FULL;
	if (!s) {
		s = slabs_take(&a->blocks);
		if (!s)
			return CSSL_E_NO_MEMORY;
		*s = *key;
		s->count = 0;
		if (table_add(&a->sources, &s->link, hash) < 0) {
			slabs_give(&a->blocks, s);
			return CSSL_E_NO_MEMORY;
		}
	}
	s->count++;
	return 0;
}

static void leave_locked(struct admission *a, const struct source *key)
{
	uint64_t hash;
	struct source *s = source_find(a, key, &hash);

	if (!s || --s->count > 0)
		return;
	table_remove(&a->sources, &s->link);
	slabs_give(&a->blocks, s);
}

/* Counted in the widths below @until. */
static void leave_widths(struct admission *a, const struct client_address *source, unsigned until)
{
	struct source key;

	for (unsigned width = 0; width < until; width++)
		if (source_key(source, width, &key))
			leave_locked(a, &key);
}

static uint32_t limit_of(const struct admission *a, unsigned width)
{
	uint64_t limit = (uint64_t)a->per_source_max * widths[width].share;

	return limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX;
}

/* In every width or in none. */
enum entering { ENTERS_WITHIN_LIMITS, ENTERS_ANYHOW };
static int enter_source(struct admission *a, const struct client_address *source, enum entering how)
{
	struct source key;
	int r = 0;

	if (a->per_source_max == 0 || source->len == 0)
		return 0;
	pthread_mutex_lock(&a->lock);
	for (unsigned width = 0; r == 0 && width < WIDTHS; width++) {
		if (!source_key(source, width, &key))
			continue;
		r = enter_locked(a, &key, how == ENTERS_ANYHOW ? UINT32_MAX : limit_of(a, width));
		if (r < 0)
			leave_widths(a, source, width);
	}
	pthread_mutex_unlock(&a->lock);
	return r;
}

int admission_enter_source(struct admission *a, const struct client_address *source)
{
	return enter_source(a, source, ENTERS_WITHIN_LIMITS) < 0 ? CSSL_E_FULL : 0;
}

int admission_bring_source(struct admission *a, const struct client_address *source)
{
	return enter_source(a, source, ENTERS_ANYHOW);
}

void admission_leave_source(struct admission *a, const struct client_address *source)
{
	if (a->per_source_max == 0 || source->len == 0)
		return;
	pthread_mutex_lock(&a->lock);
	leave_widths(a, source, WIDTHS);
	pthread_mutex_unlock(&a->lock);
}
