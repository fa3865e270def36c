/* connection_handover.h: a client connection goes on in another RAgent process: its descriptor, what of it was not
 * written and not used, and every member of struct connection that is not made anew. Nothing is destroyed by packing:
 * until the other process has taken everything, the connection can go on here.
 */
#ifndef CSSL_RAGENT_CONNECTION_HANDOVER_H
#define CSSL_RAGENT_CONNECTION_HANDOVER_H

#include "proto/wire.h"
#include "ragent/connection/connection.h"
#include "ragent/connection/connection_home.h"

/* What the numbers of the process before mean in this one. */
struct handover_map {
	int agents[AGENTS_MAX]; /* its index -> ours, or NO_AGENT */
	unsigned agent_count;
	struct front **fronts; /* its index -> ours */
	unsigned front_count;
};

/* A client whose connection is broken already ends now, not at the end of this turn. Not while one of its callbacks
 * runs. */
void connection_end_if_broken(struct connection *c);

/* Is there something to hand over? Not once its handle is being closed. 1 or 0. */
int connection_can_be_packed(const struct connection *c);
size_t connection_packed_len(const struct connection *c);
void connection_pack(const struct connection *c, struct wire_writer *w);
/* Still the connection's. */
int connection_fd(const struct connection *c);

/* A connection that another process packed, counted everywhere, on the links of @home, which were unpacked before; it
 * does nothing before connection_go_on(). @fd is owned from now on. 0, or negative: there is no such connection, @fd is
 * closed. */
int connection_unpack(
	struct connection_home *home, const struct handover_map *map, int fd, const uint8_t *in, size_t len);
/* It is ours now: read, send, wait. */
void connection_go_on(struct connection *c);

/* It is another process's: forget it without a word to anybody. */
void connection_let_go(struct connection *c);

#endif
