/* fuzz_broadcast.c: the payload of a believed datagram, up to the tables. The first byte is the worker that sent it. */
#include "tests/fuzz/lone_cluster.h"
#include "tests/fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct peer *p = lone_cluster_peer();
	struct cluster *c = p->cluster;
	uint64_t bytes;

	if (len == 0)
		return 0;
	broadcast_receiver_payload(c->receiver, p->index, in[0] % 2, in + 1, len - 1, cluster_now_ms());
	broadcast_receiver_tick(c->receiver, cluster_now_ms());
	shelf_count(store_shelf(c->store), &bytes);
	MUST(bytes <= c->conf->store.bytes);
	lone_cluster_turn();
	return 0;
}
