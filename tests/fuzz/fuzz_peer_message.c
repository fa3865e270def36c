/* fuzz_peer_message.c: a message of another agent over its link, up to the tables. */
#include "proto/scratch.h"
#include "tests/fuzz/lone_cluster.h"
#include "tests/fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct peer *p = lone_cluster_peer();
	struct scratch scratch;
	Cssl__PeerMessage *m;
	uint64_t bytes;

	p->taker.state = len % 2 ? TAKING_ALL : TAKING_OWN; /* as if a snapshot had been asked for */
	MUST(scratch_open(&scratch, 2 * len + 16384) == 0);
	m = cssl__peer_message__unpack(&scratch.allocator, len, in);
	if (m)
		peer_on_message(p, m);
	scratch_close(&scratch);
	shelf_count(store_shelf(p->cluster->store), &bytes);
	MUST(bytes <= p->cluster->conf->store.bytes);
	lone_cluster_turn();
	return 0;
}
