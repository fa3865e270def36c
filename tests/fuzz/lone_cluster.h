/* lone_cluster.h: a cluster membership whose only peer is the fuzzer: it has met the agent, its clock is known, and
 * its link is open. Made once; an input finds the state that the one before left. */
#pragma once

#include "sslagent/cluster/cluster_root.h"

#define LONE_PEER_BOOT 77u

/* The peer, with its link open, whatever the last input did to it. */
struct peer *lone_cluster_peer(void);
/* Its cluster, once it was made. */
struct cluster *lone_cluster(void);
/* Let the loop do all that is due, and read the bytes that were sent to the fuzzer. */
void lone_cluster_turn(void);
