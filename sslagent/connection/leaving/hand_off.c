/* hand_off.c: one function freezes the connection, takes out its keys and sends HANDED_OFF (law 7). */
#include "sslagent/connection/leaving/hand_off.h"

#include <assert.h>

#include "net/points/fault.h"
#include "net/points/mutant.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/connection/connection_life.h"
#include "sslagent/connection/conversation.h"
#include "sslagent/connection/succession.h"
#include "sslagent/counters.h"

/* For tests: a frozen owner that still sends a record that it never sealed. */
static void say_forged(struct connection *c)
{
	static const uint8_t forged[TLS_RECORD_HEADER_LEN + 32] = { TLS_APPLICATION_DATA, 3, 3, 0, 32 };

	connection_send(c, forged, sizeof forged, 1, 0);
}

void hand_off_connection(struct connection *c, Cssl__BackendHalf backend, enum heir heir)
{
	struct sess_obj obj;
	struct live_part part;
	int r = kept_facts_read(&c->facts, &obj);

	if (r < 0) {
		connection_end(c, END_INTERNAL, CARRIER_ABORT);
		return;
	}
	assert(!c->head);            /* it is at a checkpoint, or a backend has it */
	live_freeze(c->live, &part); /* from here on it can seal nothing (law 7) */
	cluster_leave(c->home->cluster, &c->id, c->epoch);
	part.read_sequence -= connection_holds(c) ? 1 : 0; /* its record is sent again, too */
	connection_to(c, CONNECTION_FROZEN);
	deadline_cancel(&c->deadline);
	connection_drop_interlude(c);
	unopened_drop(&c->input, c->carrier); /* RAgent sends unopened records again */
	conversation_drop_asked(c);
	holdings_set(&c->home->holdings, &c->holding, 0); /* what it has belongs to the next one */
	fault_at("move.frozen", NULL, NULL);
	r = succession_announce(c, FRAME_HANDED_OFF, &obj, &part, NULL, backend);
	if (fault_at("move.said", NULL, NULL) == FAULT_FAIL)
		say_forged(c);
	if (mutant("frozen-owner-seals"))
		connection_send_alert(c, TLS_ALERT_WARNING, TLS_ALERT_NO_RENEGOTIATION);
	const struct seen_mark at = succession_mark(c);
	if (r == 0 && heir == HEIR_NOW && !mutant("freeze-untold"))
		succession_tell_peers(c, &obj);
	else if (r == 0 && heir == HEIR_AT_WAKE) /* no agent keeps anything of it, except where it stopped */
		cluster_tell_stopped(c->home->cluster, c->home->worker, &c->id, &at, SEEN_RESTS);
	live_part_wipe(&part);
	obj.live = NULL;
	sess_obj_destroy(&obj);
	if (r < 0)
		connection_end(c, END_INTERNAL, CARRIER_ABORT);
	else
		count(COUNT_HANDED_OFF);
}

void hand_off_refuse(struct connection *c, const char *why)
{
	count(COUNT_MOVES_REFUSED);
	c->carrier->ops->refused(c->carrier, CSSL__LINK_REFUSED__REASON__CANNOT_MOVE, why);
}
