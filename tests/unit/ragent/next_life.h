/* next_life.h: the dispatcher's RAgent dies, and the process after it finds what it has saved: here a second worker on
 * the same loop, with the table of the first one. Begin with MEMORY_OUTLIVES.
 */
#pragma once

#include "ragent/connection/connection_saved.h"
#include "tests/unit/ragent/dispatcher.h"

/* Agents keep streams, and no fact comes from a time that is over. */
#define OUTLIVES                                                                                                       \
	.streams = LINK_STREAMS_OUTLIVE, .memory = MEMORY_OUTLIVES,                                                    \
	.health = "  ping: 20ms\n  suspect: 50s\n  lost: 100s\n"

/* It dies between two events. What it saved is where it was, and each saved connection has its descriptor, as after
 * leftovers_sort(); the other ones are reset. There is no d.rw until the next process runs. */
void life_ends(void);
/* The next process, which listens nowhere. It has restored, or reset, all of them. */
void next_life_begins(void);
void die(void); /* both */

/* Between the two: where the dead process has left what changes of @c: in its trail, or in @c itself. */
struct connection_now *left_by(struct connection *c);
struct trail_image *image_left_by(struct connection *c);
/* A place in the table that nobody uses, @len bytes before its end. */
uint8_t *end_of_table(size_t len);

/* From now on all agents take something new, or none does. */
void all_agents_are(int ready);

/* So many connections went on; so many could not. */
void expect_fates(unsigned went_on, unsigned not_restored);

/* The next process asks the agent of @l for its stream, which @l then names. */
void asked_to_reattach(struct live_connection *l);
/* That agent has @records of the client's records, or bytes in clear, and holds no frame that @c lacks. */
void reattached_say(const struct live_connection *l, const struct connection *c, uint64_t records);
/* Both, for the only connection, which is in @state then. */
void owner_goes_on(struct live_connection *l, uint64_t records, enum connection_state state);
