/* blocked.c: a short list, which is usually empty. The lock is the process's own: a list may be in the memory of a
 * process that died.
 */
#include "net/limits/blocked.h"

#include <pthread.h>
#include <string.h>

#include <uv.h>

#include "proto/error.h"
#include "proto/wire.h"

#define ENTRY_LEN 26u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool counts(struct blocked *b, unsigned i, uint64_t now_ms)
{
	return atomic_load(&b->at[i].until_ms) > now_ms;
}

static void blocked_put(struct blocked *b, unsigned i, const struct address_net *net, uint64_t for_ms, uint64_t now_ms)
{
	b->at[i].net = *net;
	atomic_store(&b->at[i].until_ms, for_ms < BLOCKED_FOR_GOOD - now_ms ? now_ms + for_ms : BLOCKED_FOR_GOOD);
}

int blocked_set(struct blocked *b, const struct address_net *net, uint64_t for_ms, uint64_t now_ms)
{
	unsigned unused = BLOCKED_MAX, i = 0;

	pthread_mutex_lock(&lock);
	for (; i < BLOCKED_MAX; i++) {
		if (!counts(b, i, now_ms))
			unused = unused < i ? unused : i;
		else if (memcmp(&b->at[i].net, net, sizeof *net) == 0)
			break;
	}
	if (i == BLOCKED_MAX && for_ms)
		i = unused;
	if (i < BLOCKED_MAX)
		blocked_put(b, i, net, for_ms, now_ms);
	pthread_mutex_unlock(&lock);
	return i < BLOCKED_MAX ? 0 : for_ms ? CSSL_E_FULL : CSSL_E_NOT_FOUND;
}

size_t blocked_list(struct blocked *b, uint64_t now_ms, struct blocked_net out[static BLOCKED_MAX])
{
	size_t count = 0;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; b && i < BLOCKED_MAX; i++) {
		const uint64_t until_ms = atomic_load(&b->at[i].until_ms);
		if (until_ms > now_ms)
			out[count++] = (struct blocked_net){ b->at[i].net,
				until_ms == BLOCKED_FOR_GOOD ? until_ms : until_ms - now_ms };
	}
	pthread_mutex_unlock(&lock);
	return count;
}

bool blocked_has(struct blocked *b, const struct client_address *a, uint64_t now_ms)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; b && !found && i < BLOCKED_MAX; i++)
		found = counts(b, i, now_ms) && address_net_has_bytes(&b->at[i].net, a->bytes, a->len);
	pthread_mutex_unlock(&lock);
	return found;
}

size_t blocked_pack(struct blocked *b, uint64_t now_ms, uint8_t out[static BLOCKED_PACKED_MAX])
{
	struct wire_writer w = wire_writer(out, BLOCKED_PACKED_MAX);
	struct blocked_net at[BLOCKED_MAX];

	wire_put_u64(&w, uv_hrtime()); /* before it is read: it has all changes up to then */
	const size_t count = blocked_list(b, now_ms, at);
	for (size_t i = 0; i < count; i++) {
		wire_put_u8(&w, at[i].net.len);
		wire_put_u8(&w, at[i].net.prefix);
		wire_put_bytes(&w, at[i].net.bytes, sizeof at[i].net.bytes);
		wire_put_u64(&w, at[i].left_ms);
	}
	return (size_t)wire_writer_len(&w);
}

static bool is_sound(const uint8_t *entry)
{
	return (entry[0] == 4 || entry[0] == 16) && entry[1] <= 8 * entry[0] && wire_load_u64(entry + 18) > 0;
}

int blocked_unpack(struct blocked *b, uint64_t boot_id, const uint8_t *packed, size_t len, uint64_t now_ms)
{
	const uint8_t *entry = packed + BLOCKED_MADE_LEN, *end = packed + len;

	if (len < BLOCKED_MADE_LEN || len > BLOCKED_PACKED_MAX || (len - BLOCKED_MADE_LEN) % ENTRY_LEN)
		return CSSL_E_RANGE;
	for (const uint8_t *at = entry; at < end; at += ENTRY_LEN)
		if (!is_sound(at))
			return CSSL_E_RANGE;
	pthread_mutex_lock(&lock);
	const uint64_t made_ns = wire_load_u64(packed);
	/* one RAgent sends its list over several links: an older one may come last */
	const bool is_old = boot_id == b->boot_id && made_ns < b->made_ns;
	for (unsigned i = 0; !is_old && i < BLOCKED_MAX; i++) {
		atomic_store(&b->at[i].until_ms, 0);
		if (entry == end)
			continue;
		struct address_net net = { .len = entry[0], .prefix = entry[1] };
		memcpy(net.bytes, entry + 2, sizeof net.bytes);
		blocked_put(b, i, &net, wire_load_u64(entry + 18), now_ms);
		entry += ENTRY_LEN;
	}
	if (!is_old) {
		b->boot_id = boot_id;
		b->made_ns = made_ns;
	}
	pthread_mutex_unlock(&lock);
	return 0;
}
