/* handshake_limit.h: limits the handshakes under way on one worker, in total and from one source. A handshake costs an
 * agent up to 96 KiB until it ends, and costs a client only its hello.
 *
 * When all places are taken, the source with most places loses its oldest handshake, so that a flood from a few sources
 * hurts only them. If that is the newcomer's own source, the newcomer is refused. If no source has more places than the
 * newcomer's source would have, the oldest handshake of all gives way, after it had HANDSHAKE_GRACE_MS.
 *
 * A source is an IPv4 address or an IPv6 /48. Of a /48, each /64 has the share of a source, and all of it
 * ADMISSION_OF_SITE times as much, but at most three quarters of the total. Not thread-safe. The caller gives the time.
 */
#pragma once

#include <sys/queue.h>

#include "proto/ids.h"

#define HANDSHAKE_GRACE_MS 250u

struct handshake_limit;
struct handshake_source;

/* The place of a handshake under way, embedded in its holder's struct. All zero: it has none. */
struct handshake_place {
	TAILQ_ENTRY(handshake_place) in; /* the places of its source */
	struct handshake_source *source, *subnet;
	void *holder;
	uint64_t since_ms;
};

/* A limit of 0: none. NULL: out of memory. Before it is destroyed, every place must be left. */
struct handshake_limit *handshake_limit_create(uint32_t total, uint32_t per_source);
void handshake_limit_destroy(struct handshake_limit *l);

/* Give @p a place. 0: *loser is NULL, or a handshake that lost its place and that its holder has to end. CSSL_E_FULL:
 * refused. CSSL_E_NO_MEMORY. */
int handshake_limit_enter(struct handshake_limit *l, struct handshake_place *p, const struct client_address *from,
	uint64_t now_ms, struct handshake_place **loser);
/* Count a handshake that another process began. Never refused. 0 or CSSL_E_NO_MEMORY. */
int handshake_limit_bring(
	struct handshake_limit *l, struct handshake_place *p, const struct client_address *from, uint64_t since_ms);
/* Does nothing if @p has no place. */
void handshake_limit_leave(struct handshake_limit *l, struct handshake_place *p);

/* A number of the source of @p, which has a place: sources get consecutive ones when their first handshake begins. */
uint32_t handshake_place_source(const struct handshake_place *p);

uint32_t handshake_limit_count(const struct handshake_limit *l);
