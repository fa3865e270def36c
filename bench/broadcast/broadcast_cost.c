/* broadcast_cost.c: the fit, by coordinate descent: each part in turn gets its best value, until nothing
 * moves. Few runs and few parts: simple is enough. */
#include "bench/broadcast/broadcast_cost.h"

#include <string.h>

#define ROUNDS 20000u
#define PARTS  (BROADCAST_KINDS + 2u) /* each kind of object, a datagram, a datagram to a peer */

enum { DATAGRAM = BROADCAST_KINDS, DATAGRAM_PEER };

/* A run as an equation: factors[0] * parts[0] + ... = ns. */
struct equation {
	double factors[PARTS], ns;
};

/* So that errors count relatively: the cheap runs are as many as the expensive ones, and matter more. */
static void make_relative(struct equation *e)
{
	double ns = e->ns > 1 ? e->ns : 1;

	e->ns /= ns;
	for (unsigned part = 0; part < PARTS; part++)
		e->factors[part] /= ns;
}

static double best_value(const struct equation *e, size_t count, const double *parts, unsigned part)
{
	double up = 0, down = 0;

	for (size_t i = 0; i < count; i++) {
		double rest = e[i].ns;

		for (unsigned other = 0; other < PARTS; other++)
			rest -= other == part ? 0 : e[i].factors[other] * parts[other];
		up += e[i].factors[part] * rest;
		down += e[i].factors[part] * e[i].factors[part];
	}
	return down > 0 && up > 0 ? up / down : 0;
}

static void equations_solve(const struct equation *e, size_t count, double *parts)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned part = 0; part < PARTS; part++)
			parts[part] = best_value(e, count, parts, part);
}

void broadcast_cost_fit(const struct broadcast_run *runs, size_t count, struct broadcast_cost *out)
{
	double sending[PARTS] = { 0 }, receiving[PARTS] = { 0 };
	struct equation sender[BROADCAST_RUNS_MAX], receiver[BROADCAST_RUNS_MAX];

	for (size_t i = 0; i < count; i++) {
		const struct broadcast_run *r = &runs[i];
		double datagrams = r->datagrams / r->objects;

		sender[i] = (struct equation){ .ns = r->sender_ns };
		receiver[i] = (struct equation){ .ns = r->receiver_ns };
		sender[i].factors[r->kind] = receiver[i].factors[r->kind] = 1;
		sender[i].factors[DATAGRAM] = receiver[i].factors[DATAGRAM] = datagrams;
		sender[i].factors[DATAGRAM_PEER] = datagrams * r->peers;
		make_relative(&sender[i]);
		make_relative(&receiver[i]);
	}
	equations_solve(sender, count, sending);
	equations_solve(receiver, count, receiving);
	*out = (struct broadcast_cost){ .datagram_ns = sending[DATAGRAM],
		.datagram_peer_ns = sending[DATAGRAM_PEER],
		.received_datagram_ns = receiving[DATAGRAM] };
	memcpy(out->object_ns, sending, sizeof out->object_ns);
	memcpy(out->received_object_ns, receiving, sizeof out->received_object_ns);
}
