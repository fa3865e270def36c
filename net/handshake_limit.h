/* handshake_limit.h: how many handshakes may be under way on one worker, and of one source. A handshake costs an agent
 * some 80 KB until it ends, and a client nothing but its hello.
 *
 * When all places are taken, who gives way is the oldest handshake of the source that holds most: a flood from a few
 * sources hurts those alone. Where the newcomer's own source holds most, the newcomer is refused. Where nobody holds
 * more than the newcomer's source would, the oldest gives way, once it had HANDSHAKE_GRACE_MS.
 *
 * A source is an IPv4 address or an IPv6 /48, which has ADMISSION_OF_SITE times the share. Not thread-safe; time is an
 * argument.
 */
#ifndef CSSL_NET_HANDSHAKE_LIMIT_H
#define CSSL_NET_HANDSHAKE_LIMIT_H

#include "proto/sess_obj.h"

#define HANDSHAKE_GRACE_MS 250u

struct handshake_limit;
struct handshake_source;

/* A handshake that is under way. Embedded in what its holder has for it; zero: it holds no place. */
struct handshake_place {
	struct handshake_place *newer, *older; /* of its source */
	struct handshake_source *source;
	void *holder;
	uint64_t since_ms;
};

/* 0: no such limit. NULL: out of memory. Destroying it needs that every place was left. */
struct handshake_limit *handshake_limit_create(uint32_t total, uint32_t per_source);
void handshake_limit_destroy(struct handshake_limit *l);

/* @p holds a place from now on: 0, and *loser may be another that has none any more: its holder has to end it. Or
 * CSSL_E_FULL: refused; CSSL_E_NO_MEMORY. */
int handshake_limit_enter(struct handshake_limit *l, struct handshake_place *p, const struct client_address *from,
	uint64_t now_ms, struct handshake_place **loser);
/* One that is under way already, from another process: counted, never refused. 0 or CSSL_E_NO_MEMORY. */
int handshake_limit_bring(
	struct handshake_limit *l, struct handshake_place *p, const struct client_address *from, uint64_t since_ms);
/* Without a place: nothing happens. */
void handshake_limit_leave(struct handshake_limit *l, struct handshake_place *p);

uint32_t handshake_limit_count(const struct handshake_limit *l);

#endif
