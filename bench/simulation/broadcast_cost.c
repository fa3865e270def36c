/* broadcast_cost.c: the sum, and its fit by coordinate descent: each part in turn gets its best value, until nothing
 * moves. Few runs and three parts: simple is enough. */
#include "bench/simulation/broadcast_cost.h"

#define ROUNDS 20000u
#define PARTS  3u

const struct broadcast_cost broadcast_cost_measured = {
	.object_ns = 1360,
	.datagram_ns = 4360,
	.datagram_peer_ns = 1850,
	.received_datagram_ns = 2900,
	.received_object_ns = 1440,
};

double broadcast_cost_sender_ns(const struct broadcast_cost *c, double objects, double datagrams, double peers)
{
	return objects * c->object_ns + datagrams * (c->datagram_ns + peers * c->datagram_peer_ns);
}

double broadcast_cost_receiver_ns(const struct broadcast_cost *c, double objects, double datagrams)
{
	return objects * c->received_object_ns + datagrams * c->received_datagram_ns;
}

/* A run as an equation: factors[0] * parts[0] + ... = ns. */
struct equation {
	double factors[PARTS], ns;
};

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

static void solve(const struct equation *e, size_t count, double *parts)
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

		sender[i] = (struct equation){ { 1, datagrams, datagrams * r->peers }, r->sender_ns };
		receiver[i] = (struct equation){ { 1, datagrams, 0 }, r->receiver_ns };
	}
	solve(sender, count, sending);
	solve(receiver, count, receiving);
	*out = (struct broadcast_cost){ sending[0], sending[1], sending[2], receiving[1], receiving[0] };
}
