/* lone_cluster.h: a cluster membership whose only peer is the fuzzer: met, of known clock, with an open link. Made
 * once; what one input leaves behind the next one finds. */
#ifndef CSSL_TESTS_FUZZ_LONE_CLUSTER_H
#define CSSL_TESTS_FUZZ_LONE_CLUSTER_H

#include "sslagent/cluster/peer.h"

/* The peer, its link open whatever the last input did to it. */
struct peer *lone_cluster_peer(void);
/* Let the loop do what is due, and read what was sent to the fuzzer. */
void lone_cluster_turn(void);

#endif
