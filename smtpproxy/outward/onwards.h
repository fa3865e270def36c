/* onwards.h: the connections of one destination, by what they are doing. A part of its own, because each change is
 * counted twice: for the destination, and for the receiver that it may share with others. Called by destination.c,
 * which also reads @all, @in and @age. */
#pragma once

#include "smtpproxy/outward/onward.h"

/* The lists of connections. */
enum destination_place {
	DESTINATION_OPENING,
	DESTINATION_IDLE,
	DESTINATION_LEASED,
	DESTINATION_LEAVING,
	DESTINATION_PLACES
};

struct onwards {
	TAILQ_HEAD(, onward) all;
	uint32_t in[DESTINATION_PLACES]; /* by enum destination_place */
	uint32_t *shared;                /* the same of all destinations of the receiver */
	uint32_t age; /* a new file, or a demand for TLS, adds one: connections of an earlier age end */
};

/* @shared lives longer. */
void onwards_init(struct onwards *all, uint32_t shared[static DESTINATION_PLACES]);

/* A connection was opened: it is OPENING, and of the present age. */
void onwards_add(struct onwards *all, struct onward *o);
void onwards_place(struct onwards *all, struct onward *o, enum destination_place to);
void onwards_remove(struct onwards *all, struct onward *o);

/* An idle connection, best one that has greeted with @name before, which saves a round trip; NULL: none is idle. */
struct onward *onwards_find_idle(const struct onwards *all, const char *name);
/* A new age begins, and only connections that have TLS, or are about to try, are of it. */
void onwards_age_clear_ones(struct onwards *all);

/* Of the counts of a destination or a receiver: all; and those that it has greeted and that may be used. */
uint32_t onwards_count(const uint32_t in[static DESTINATION_PLACES]);
uint32_t onwards_usable(const uint32_t in[static DESTINATION_PLACES]);
