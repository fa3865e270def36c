/* connection_handover.h: a client connection goes to another RAgent process: its descriptor, bytes that are not yet
 * written or used, and every member of struct connection that is not made anew. Packing destroys nothing: until the
 * other process has taken everything, this process can continue the connection.
 */
#ifndef CSSL_RAGENT_CONNECTION_HANDOVER_H
#define CSSL_RAGENT_CONNECTION_HANDOVER_H

#include "proto/wire.h"
#include "ragent/connection/connection.h"
#include "ragent/connection/connection_home.h"

/* Translates the numbers of the old process into those of this one. */
struct handover_map {
	int agents[AGENTS_MAX]; /* old index -> our index, or NO_AGENT */
	unsigned agent_count;
	struct front **fronts; /* old index -> ours */
	unsigned front_count;
};

/* End the connection now, not at the end of this turn, if the client's TCP connection is broken. Do not call it
 * while one of its callbacks runs. */
void connection_end_if_broken(struct connection *c);

/* If it waits for its owner, or not all of its owner's frames have come again: the owner is lost, because what it needs
 * to go on with it is not handed over. This may end it. */
void connection_stop_reattaching(struct connection *c);
/* Would it do so to any? */
bool connection_home_waits_for_owners(const struct connection_home *home);

size_t connection_packed_len(const struct connection *c);
void connection_pack(const struct connection *c, struct wire_writer *w);
/* The connection keeps the descriptor. */
int connection_fd(const struct connection *c);

/* Makes a connection that another process packed (@map NULL: its numbers are this one's), counted everywhere, on the
 * links of @home, which were unpacked before. It does nothing before connection_go_on(). Takes over @fd. 0; or
 * negative: the data is invalid, and @fd is closed. */
int connection_unpack(
	struct connection_home *home, const struct handover_map *map, int fd, const uint8_t *in, size_t len);
/* The connection is this process's now: read, send, wait. */
void connection_go_on(struct connection *c);

/* The connection is the other process's now: forget it, and tell no one. */
void connection_let_go(struct connection *c);

#endif
