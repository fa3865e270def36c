/* fuzz_broadcast.c: the payload of a believed datagram, up to the tables. The first byte is the worker that sent it. */
#include "proto/datagram.h"
#include "sslagent/sessions/store.h"
#include "tests/fuzz/lone_cluster.h"
#include "tests/fuzz/must.h"

#define THREADS 2u
#define KEY_ID  1u

/* The peer seals under a key that it gave before its first use: no proof is needed. */
static struct datagram_key *key_of(struct peer *p, unsigned thread)
{
	static struct datagram_key *keys[THREADS];
	const struct given_key given = { .id = KEY_ID, .aead = aead_preferred(), .secret = { 1 }, .use = KEY_NEXT };

	MUST(broadcast_receiver_add_key(p->all->of.receiver, p->index, &given, cluster_now_ms()) == 0);
	if (!keys[thread])
		keys[thread] = datagram_key_create(KEY_ID, given.aead, given.secret);
	MUST(keys[thread]);
	return keys[thread];
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	static uint64_t sealed_before;
	struct peer *p = lone_cluster_peer();
	struct cluster *c = lone_cluster();
	struct datagram_header h = { .boot_id = LONE_PEER_BOOT, .key_id = KEY_ID, .counter = ++sealed_before };
	uint8_t datagram[DATAGRAM_MAX];
	uint64_t bytes;

	if (len == 0)
		return 0;
	h.worker = in[0] % THREADS;
	len = len - 1 < DATAGRAM_PAYLOAD_MAX ? len - 1 : DATAGRAM_PAYLOAD_MAX;
	ptrdiff_t sealed = datagram_seal(key_of(p, h.worker), &h, in + 1, len, datagram, sizeof(datagram));
	MUST(sealed > 0);
	broadcast_receiver_input(c->receiver, datagram, (size_t)sealed, cluster_now_ms());
	broadcast_receiver_tick(c->receiver, cluster_now_ms());
	shelf_count(store_shelf(c->store), &bytes);
	MUST(bytes <= c->conf->store.bytes);
	lone_cluster_turn();
	return 0;
}
