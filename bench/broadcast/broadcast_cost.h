/* broadcast_cost.h: the CPU time that a handshake costs on its way to other agents, as a sum of parts: nanoseconds for
 * each kind of object, for a datagram, for a datagram to one peer. The parts are fitted to measured runs.
 * `./cssl bench scaling` computes with them.
 */
#pragma once

#include <stddef.h>

enum broadcast_kind {
	BROADCAST_SESSION,
	BROADCAST_LIVE_PART, /* with live: broadcast */
	BROADCAST_WORD, /* that a connection exists, was adopted or ended; with live: carried in place of a live part */
	BROADCAST_KINDS,
};

struct broadcast_cost {
	double object_ns[BROADCAST_KINDS]; /* sender: encode, store, number */
	double datagram_ns;                /* sender: seal */
	double datagram_peer_ns;           /* sender: the kernel's part for each peer */
	double received_datagram_ns;
	double received_object_ns[BROADCAST_KINDS]; /* decode, store */
};

/* One run: @peers got @objects in @datagrams of @bytes each. */
struct broadcast_run {
	enum broadcast_kind kind;
	unsigned peers, per_turn;
	double objects, datagrams, bytes;
	double sender_ns, receiver_ns; /* for an object; a receiver's is the mean of all */
};

#define BROADCAST_RUNS_MAX 32u

/* The parts that explain the runs best (least squares of the relative errors, no part below 0). @count from 4 to
 * BROADCAST_RUNS_MAX, of two numbers of peers and two of objects per datagram at least, for each kind that has runs.
 * Another kind costs 0. */
void broadcast_cost_fit(const struct broadcast_run *runs, size_t count, struct broadcast_cost *out);
