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

size_t connection_packed_len(const struct connection *c);
void connection_pack(const struct connection *c, struct wire_writer *w);

/* Makes a connection that another process packed (@map NULL: its numbers are this one's), counted everywhere, on the
 * links of @home, which were unpacked before. It does nothing before connection_go_on(). Takes over @fd. 0; or
 * negative: the data is invalid, and @fd is closed. */
int connection_unpack(
	struct connection_home *home, const struct handover_map *map, int fd, const uint8_t *in, size_t len);
/* The connection is this process's now: read, send, wait. */
void connection_go_on(struct connection *c);

#endif
