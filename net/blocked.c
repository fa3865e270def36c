/* blocked.c: a short list, which is usually empty. The lock is the process's own: a list may be in the memory of a
 * process that died.
 */
#include "net/blocked.h"

#include <pthread.h>
#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int counts(struct blocked *b, unsigned i, uint64_t now_ms)
{
	return atomic_load(&b->at[i].until_ms) > now_ms;
}

static int set(struct blocked *b, const struct address_net *net, uint64_t for_ms, uint64_t now_ms)
{
	const uint64_t until_ms = for_ms == 0 || for_ms == BLOCKED_FOR_GOOD ? for_ms : now_ms + for_ms;
	unsigned place = BLOCKED_MAX, i = 0;

	for (; i < BLOCKED_MAX; i++) {
		if (counts(b, i, now_ms) && memcmp(&b->at[i].net, net, sizeof *net) == 0)
			break;
		if (place == BLOCKED_MAX && !counts(b, i, now_ms))
			place = i;
	}
	if (i < BLOCKED_MAX)
		place = i;
	else if (for_ms == 0 || place == BLOCKED_MAX)
		return for_ms ? CSSL_E_FULL : CSSL_E_NOT_FOUND;
	b->at[place].net = *net;
	atomic_store(&b->at[place].until_ms, until_ms);
	if (until_ms > atomic_load(&b->last_ms))
		atomic_store(&b->last_ms, until_ms);
	return 0;
}

int blocked_set(struct blocked *b, const struct address_net *net, uint64_t for_ms, uint64_t now_ms)
{
	pthread_mutex_lock(&lock);
	const int r = set(b, net, for_ms, now_ms);
	pthread_mutex_unlock(&lock);
	return r;
}

int blocked_next(struct blocked *b, unsigned *i, struct blocked_net *out, uint64_t now_ms)
{
	int found = 0;

	pthread_mutex_lock(&lock);
	for (; b && !found && *i < BLOCKED_MAX; ++*i) {
		const uint64_t until_ms = atomic_load(&b->at[*i].until_ms);
		found = until_ms > now_ms;
		out->net = b->at[*i].net;
		out->left_ms = until_ms == BLOCKED_FOR_GOOD ? until_ms : until_ms - now_ms;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

int blocked_has(struct blocked *b, const struct client_address *a, uint64_t now_ms)
{
	struct blocked_net net;
	unsigned i = 0;

	if (!b || atomic_load(&b->last_ms) <= now_ms)
		return 0;
	while (blocked_next(b, &i, &net, now_ms))
		if (address_net_has_bytes(&net.net, a->bytes, a->len))
			return 1;
	return 0;
}

size_t blocked_pack(struct blocked *b, uint64_t now_ms, uint8_t out[static BLOCKED_PACKED_MAX])
{
	struct wire_writer w = wire_writer(out, BLOCKED_PACKED_MAX);
	struct blocked_net next;

	for (unsigned i = 0; blocked_next(b, &i, &next, now_ms);) {
		wire_put_u8(&w, next.net.len);
		wire_put_u8(&w, next.net.prefix);
		wire_put_bytes(&w, next.net.bytes, sizeof next.net.bytes);
		wire_put_u64(&w, next.left_ms);
	}
	return (size_t)wire_writer_len(&w);
}

int blocked_unpack(struct blocked *b, const uint8_t *packed, size_t len, uint64_t now_ms)
{
	struct wire_reader r = wire_reader(packed, len);
	int result = 0;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < BLOCKED_MAX; i++)
		atomic_store(&b->at[i].until_ms, 0);
	while (result == 0 && wire_left(&r) > 0) {
		struct address_net net = { .len = wire_u8(&r) };
		net.prefix = wire_u8(&r);
		const uint8_t *bytes = wire_bytes(&r, sizeof net.bytes);
		const uint64_t left_ms = wire_u64(&r);
		if (!bytes || left_ms == 0 || (net.len != 4 && net.len != 16) || net.prefix > 8 * net.len) {
			result = CSSL_E_RANGE;
			break;
		}
		memcpy(net.bytes, bytes, sizeof net.bytes);
		result = set(b, &net, left_ms, now_ms);
	}
	pthread_mutex_unlock(&lock);
	return result;
}
