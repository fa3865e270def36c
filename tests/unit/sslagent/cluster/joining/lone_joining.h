/* lone_joining.h: an agent of three that joins, without a link: what its tests share. */
#pragma once

#include "sslagent/cluster/joining/joining.h"

#define LONE_AGENTS         3u
#define LONE_ALONE_AFTER_MS 1000
#define LONE_LEFT_MS        500

struct lone_joining {
	struct peers peers;
	struct broadcast_receiver *receiver;
	struct sending_keys *sending;
	struct tombstones *tombstones;
	struct store *store;
	struct shelf *live;
	struct connections_seen *seen;
	struct joining joining;
	unsigned ready;
};

/* Agent @self of "a", "b", "c", each session at @replicas of them; time begins at 0. */
void lone_joining_start(struct lone_joining *l, unsigned self, unsigned replicas);
void lone_joining_stop(struct lone_joining *l);
