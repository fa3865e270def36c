/* body_room.h: deliver: queue: the memory of all messages that come in or wait for their reply. All sessions share it.
 * No sockets, no clock.
 *
 *   FREE --a message does not fit--> FULL --half of it is free again--> FREE
 */
#ifndef CSSL_SMTPPROXY_BODY_ROOM_H
#define CSSL_SMTPPROXY_BODY_ROOM_H

#include <stddef.h>
#include <stdint.h>

enum body_room_state { BODY_ROOM_FREE, BODY_ROOM_FULL };

struct body_room {
	uint64_t most, used; /* bytes */
	enum body_room_state state;
	void (*on_change)(void *ctx); /* the state has changed; NULL is legal */
	void *ctx;
};

/* 0; CSSL_E_FULL: nothing was taken, and the room is FULL. on_change may come before it returns. */
int body_room_take(struct body_room *r, size_t bytes);
/* @bytes were taken before. on_change may come before it returns. */
void body_room_give(struct body_room *r, size_t bytes);

#endif
