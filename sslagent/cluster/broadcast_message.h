/* broadcast_message.h: messages of broadcast.proto in a datagram's payload: each has its length (2 bytes) in front. */
#ifndef CSSL_SSLAGENT_BROADCAST_MESSAGE_H
#define CSSL_SSLAGENT_BROADCAST_MESSAGE_H

#include "proto/broadcast.pb-c.h"
#include "proto/datagram.h"
#include "proto/scratch.h"
#include "proto/wire.h"

#define CHALLENGE_LEN 16u
#define SENDER_THREADS_MAX                                                                                             \
	129u /* of one process: its workers and its main thread; told of all together in one datagram */
#define BROADCAST_MESSAGE_FRAME_LEN 2u
#define BROADCAST_MESSAGE_MAX       (DATAGRAM_PAYLOAD_MAX - BROADCAST_MESSAGE_FRAME_LEN)

/* Bytes of @m with its length in front. */
size_t broadcast_message_len(const Cssl__BroadcastMessage *m);
/* Write it to @out, which has room; bytes written. @m is at most BROADCAST_MESSAGE_MAX long. */
size_t broadcast_message_write(const Cssl__BroadcastMessage *m, uint8_t *out);

/* The next message at @in, unpacked into @scratch (which the caller closes) and checked: it says one thing, ids and
 * challenges have their lengths, numbers their ranges. 0, or negative: the rest of the payload is not to be read. */
int broadcast_message_next(struct wire_reader *in, struct scratch *scratch, const Cssl__BroadcastMessage **out);

#endif
