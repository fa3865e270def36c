/* body_room.h: memory that the messages of all sessions share, with a part for each source: of messages that come in or
 * wait for the queue, and of messages that are kept for hooks. No sockets, no clock.
 *
 *   FREE --a message does not fit--> FULL --half of it is free again--> FREE
 *
 * Half of the room is for everybody. While more than that is used, a source with several messages may have a quarter of
 * the room. So a source that sends many messages slowly, or not to their ends, leaves room for the others, and cannot
 * make it FULL. A source is an IPv4 address, or an IPv6 /64, because a subscriber has at least that. The only message
 * of a source may take all room that is free. While more than half is used the room is short, and senders that stop in
 * the middle of a message have to leave (session_pace.c).
 */
#pragma once

#include <sodium.h>
#include <stddef.h>
#include <stdint.h>

#include "net/memory/table.h"
#include "proto/ids.h"
#include "smtpproxy/hooks/message.h"

enum body_room_state { BODY_ROOM_FREE, BODY_ROOM_FULL };

struct body_room {
	uint64_t most, used; /* bytes */
	enum body_room_state state;
	struct table sources;                        /* that have messages */
	uint8_t hash_key[crypto_shorthash_KEYBYTES]; /* so that sources cannot choose their bucket */
	void (*on_change)(void *ctx);                /* the state has changed; NULL is legal */
	void *ctx;
};

/* The part of the room that one message has. Embedded; zero has nothing. */
struct body_share {
	struct body_room *room;
	struct body_source *source;
	size_t taken; /* bytes */
};

void body_room_begin(struct body_room *r, uint64_t most, void (*on_change)(void *ctx), void *ctx);

/* More than half of it is used. */
bool body_room_is_short(const struct body_room *r);

/* A message of that source begins, without any bytes. 0 or CSSL_E_NO_MEMORY. */
int body_share_begin(struct body_room *r, struct body_share *h, const struct client_address *source);
/* It has so many bytes from now on. 0. CSSL_E_FULL: nothing has changed, because the source has its part, or because
 * the room does not have so many bytes; then it is FULL. Less always fits. on_change may come before it returns. */
int body_share_resize(struct body_share *h, size_t bytes);
/* The memory of @m is a part of @h: adds bytes to @m. 0; CSSL_E_FULL, CSSL_E_TOO_LONG or CSSL_E_NO_MEMORY: nothing has
 * changed. */
int body_share_add(struct body_share *h, struct message *m, const void *data, size_t len, size_t most);
/* It gives all back, and is zero again. Legal for one that has not begun. */
void body_share_end(struct body_share *h);
