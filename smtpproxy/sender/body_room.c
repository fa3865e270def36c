/* body_room.c: counts bytes. The room stays FULL until half of it is free, so that the listening sockets do not close
 * and open again with each message. */
#include "smtpproxy/sender/body_room.h"

#include <assert.h>

#include "proto/error.h"

static void move(struct body_room *r, enum body_room_state to)
{
	if (r->state == to)
		return;
	r->state = to;
	if (r->on_change)
		r->on_change(r->ctx);
}

int body_room_take(struct body_room *r, size_t bytes)
{
	if (r->used + bytes > r->most) {
		move(r, BODY_ROOM_FULL);
		return CSSL_E_FULL;
	}
	r->used += bytes;
	return 0;
}

void body_room_give(struct body_room *r, size_t bytes)
{
	assert(bytes <= r->used);
	r->used -= bytes;
	if (r->used <= r->most / 2)
		move(r, BODY_ROOM_FREE);
}
