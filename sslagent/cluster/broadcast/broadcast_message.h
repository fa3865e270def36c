/* broadcast_message.h: messages of broadcast.proto in a datagram's payload. The length of each (2 bytes) stands
 * before it; a sender writes it. It is a part of its own because every field that comes from outside is checked here,
 * in one place. */
#pragma once

#include "proto/broadcast.pb-c.h"
#include "proto/datagram.h"
#include "proto/scratch.h"
#include "proto/wire.h"

#define CHALLENGE_LEN               16u
#define SENDER_THREADS_MAX          129u /* workers and main thread of one process; one datagram names them all */
#define BROADCAST_MESSAGE_FRAME_LEN 2u

/* The next message at @in, unpacked into @scratch (which the caller closes) and checked: it has one content, the length
 * of each id and challenge is right, each number is in its range. Returns 0, or negative: the caller must not read the
 * rest of the payload. */
int broadcast_message_next(struct wire_reader *in, struct scratch *scratch, const Cssl__BroadcastMessage **out);
