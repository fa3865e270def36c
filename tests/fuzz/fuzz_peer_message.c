/* fuzz_peer_message.c: a message of another agent over its link, up to the tables. */
#include "proto/scratch.h"
#include "sslagent/sessions/store.h"
#include "tests/fuzz/lone_cluster.h"
#include "tests/fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct peer *p = lone_cluster_peer();
	struct cluster *c = lone_cluster();
	struct scratch scratch;
	Cssl__PeerMessage *m;
	uint64_t bytes;

	c->joining.with[p->index].taker.state =
		len % 2 ? TAKING_ALL : TAKING_OWN; /* as if a snapshot had been asked for */
	MUST(scratch_open(&scratch, 2 * len + 16384) == 0);
	m = cssl__peer_message__unpack(&scratch.allocator, len, in);
	if (m)
		p->link->ops->on_message(p->link, m);
	scratch_close(&scratch);
	shelf_count(store_shelf(c->store), &bytes);
	MUST(bytes <= c->conf->store.bytes);
	lone_cluster_turn();
	return 0;
}
