/* virtual_network.h: many broadcast senders and receivers in one process, under virtual time, joined by a network that
 * loses, delays, reorders and duplicates as it is told and the same way every time. Links are not part of it: keys are
 * given at once and reliably, snapshots are noted as wanted. */
#pragma once

#include "sslagent/cluster/broadcast/broadcast_receiver.h"
#include "sslagent/cluster/broadcast/broadcast_sender.h"
#include "sslagent/counters.h"

#define NODES_MAX  1024u
#define VALUES_MAX 65536u /* objects of one sender that a node can tell apart */

struct vnet;

struct vnet_quality {
	double loss, duplicate;
	unsigned delay_ms, jitter_ms; /* jitter reorders */
};

struct vnet_conf {
	unsigned nodes, ring;
	uint64_t seed;
	struct vnet_quality quality;
};

struct vnet *vnet_create(const struct vnet_conf *conf);
void vnet_destroy(struct vnet *v);

void vnet_set_quality(struct vnet *v, struct vnet_quality q);
/* Datagrams from @from to @to arrive, or do not. */
enum vnet_way { WAY_OPEN, WAY_CUT };
void vnet_set_way(struct vnet *v, unsigned from, unsigned to, enum vnet_way way);

/* A link between the two opened: each gives the other its keys. All at first have done so with all. */
void vnet_introduce(struct vnet *v, unsigned a, unsigned b);
/* The process starts again: remembers nothing, has a new boot and a new key. Its peers are introduced. */
void vnet_restart(struct vnet *v, unsigned node);
/* Its next key goes to all now and is used after @after_ms. */
void vnet_roll_key(struct vnet *v, unsigned node, unsigned after_ms);

/* Node @node numbers an object with that value (< VALUES_MAX) and tells all. */
void vnet_tell(struct vnet *v, unsigned node, unsigned value);
/* A message of @node's worker to one other. */
void vnet_say(struct vnet *v, unsigned node, unsigned to, Cssl__BroadcastMessage *m);

void vnet_run(struct vnet *v, unsigned ms);
int64_t vnet_now_ms(const struct vnet *v);

/* How often @at handed on value @value of @from. Zeroed by a restart of @at. */
unsigned vnet_heard(const struct vnet *v, unsigned at, unsigned from, unsigned value);
/* Of the values 0..values-1. */
unsigned vnet_heard_count(const struct vnet *v, unsigned at, unsigned from, unsigned values);
/* The age that @at saw when it last heard that value. */
int64_t vnet_age_ms(const struct vnet *v, unsigned at, unsigned from, unsigned value);
unsigned vnet_snapshots_wanted(const struct vnet *v, unsigned at, unsigned from);
uint64_t vnet_counted(const struct vnet *v, unsigned at, enum agent_counter which);
struct broadcast_receiver *vnet_receiver(struct vnet *v, unsigned node);

/* Datagrams that anybody sent while capturing, in order. */
void vnet_capture(struct vnet *v);
size_t vnet_captured(const struct vnet *v);
const uint8_t *vnet_captured_at(const struct vnet *v, size_t i, size_t *len, unsigned *from);
/* Give @to a datagram as if the network had brought it. */
void vnet_inject(struct vnet *v, unsigned to, const uint8_t *datagram, size_t len);
