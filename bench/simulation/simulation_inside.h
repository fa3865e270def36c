/* simulation_inside.h: the simulated cluster, shared by its two halves: simulation.c lets time go on and datagrams fly,
 * simulated_sessions.c makes handshakes, knows who has a session, and lets clients come back. Nobody else looks inside.
 */
#ifndef CSSL_BENCH_SIMULATION_SIMULATION_INSIDE_H
#define CSSL_BENCH_SIMULATION_SIMULATION_INSIDE_H

#include <stdlib.h>

#include "bench/simulation/simulation.h"
#include "bench/simulation/virtual_wire.h"
#include "proto/datagram.h"
#include "proto/placement.h"
#include "proto/sess_obj.h"
#include "sslagent/cluster/broadcast_receiver.h"
#include "sslagent/cluster/broadcast_sender.h"
#include "sslagent/counters.h"

#define SIMULATION_START_MS 1000 /* of the agents' clocks */
#define RECENT              1024u
#define LIVE_SERIAL         UINT64_MAX /* in place of a session's: a live part */

struct made {
	int64_t at_ms;
	uint16_t origin, life;
};

struct agent {
	struct simulation *simulation;
	unsigned index;
	enum { AGENT_UP, AGENT_DOWN } state;
	uint16_t life; /* how often it started */
	int64_t up_ms; /* since when */
	struct broadcast_sender *sender;
	/* of a watched one */
	struct broadcast_receiver *receiver;
	uint8_t *heard; /* a bit for each session */
};

struct simulation {
	struct simulation_conf conf;
	struct simulation_result *result;
	struct virtual_wire *wire;
	struct placement *placement;
	struct counter_array counters;
	struct made *made;
	uint64_t made_max, return_every;
	int64_t members_changed_ms;
	unsigned up, recent[RECENT], recent_count; /* ms from made to heard */
	uint8_t object[DATAGRAM_PAYLOAD_MAX];
	struct agent agents[];
};

static inline int64_t now_of(const struct simulation *s)
{
	return SIMULATION_START_MS + virtual_wire_now_ms(s->wire);
}

static inline int is_watched(const struct simulation *s, unsigned agent)
{
	return agent < s->conf.watched;
}

/* Of @len bytes, all zero behind the event itself; there is no going on without memory. */
static inline void *event_of(size_t len, void (*fn)(void *ctx, struct wire_event *e))
{
	struct wire_event *e = calloc(1, len);

	if (!e)
		abort();
	e->fn = fn;
	return e;
}

/* One of the agents 0..among-1 that are up; there is one. */
struct agent *simulation_pick_up(struct simulation *s, unsigned among);

/* simulated_sessions.c */
void session_id_of(const struct simulation *s, uint64_t serial, uint8_t id[static SESSION_ID_LEN]);
int agent_has(const struct simulation *s, const struct agent *a, uint64_t serial);
/* Its agent tells the others. Sometimes its client comes back later. */
void simulation_handshake(struct simulation *s);

#endif
