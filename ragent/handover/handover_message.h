/* handover_message.h: what one RAgent process says to the one that replaces it: a type, bytes, and descriptors that go
 * along. The bytes may hold keys, so every buffer is wiped.
 *
 * The new process connects to the handover socket of the old one; both read the same types:
 *
 *     new                                    old
 *     HELLO    what formats it reads   -->
 *                                      <--   OFFER    what runs: name, workers, agents, listeners, links
 *                                      <--   SOCKETS  listening sockets, passed and never bound again; several
 *     TAKE     worker n                -->            or REFUSED: the old process goes on as before
 *                                      <--   WORKER, LINK, CONNECTIONS ...   it does not read or write meanwhile
 *     TAKEN    after each of them      -->            or REFUSED: the old worker goes on
 *                                      <--   COMMIT   from here on the sockets are the new process's
 *     TAKE     worker n + 1 ...        -->
 *     DONE     no worker is left       -->            the old process answers nobody any more, closes, and ends
 *
 * Before COMMIT the new process neither reads nor writes any of the sockets, behind it the old one does not. Whoever
 * breaks off closes the handover connection.
 */
#ifndef CSSL_RAGENT_HANDOVER_MESSAGE_H
#define CSSL_RAGENT_HANDOVER_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

/* What this release reads. It writes the latest of them that the new process reads as well.
 *
 *     1
 *     2   WORKER has who owned its connections before, and what was counted of each agent
 *     3   LINK has a second descriptor where the link's bytes go through shared memory
 *     4   LINK has a last descriptor, by which the death of the agent's process is proved, where there is one
 */
#define HANDOVER_FORMAT        4u
#define HANDOVER_FORMAT_MIN    1u
#define HANDOVER_TELLS_PAST    2u /* the first that does */
#define HANDOVER_SHARES_MEMORY 3u
#define HANDOVER_PROVES_DEATH  4u

#define HANDOVER_FDS_MAX 250u                   /* the kernel passes 253 at once */
#define HANDOVER_LEN_MAX (256u * 1024u * 1024u) /* one connection can hold back tens of megabytes */

enum handover_type {
	HANDOVER_HELLO = 1,
	HANDOVER_OFFER,
	HANDOVER_SOCKETS,
	HANDOVER_REFUSED, /* a sentence */
	HANDOVER_TAKE,
	HANDOVER_WORKER,
	HANDOVER_LINK,
	HANDOVER_CONNECTIONS,
	HANDOVER_TAKEN,
	HANDOVER_COMMIT,
	HANDOVER_DONE,
	HANDOVER_TYPE_END,
};

/* Zero before use. */
struct handover_message {
	uint8_t type; /* enum handover_type */
	uint8_t *data;
	size_t len, cap;
	enum { HANDOVER_FDS_BORROWED, HANDOVER_FDS_OWNED } fds_are; /* OWNED: those not taken out are closed */
	int fds[HANDOVER_FDS_MAX];
	unsigned fd_count, fds_taken;
};

/* Empty it and begin anew; the buffer stays. */
void handover_message_begin(struct handover_message *m, enum handover_type type);
/* @len more bytes, to be filled. NULL: out of memory, or HANDOVER_LEN_MAX. */
uint8_t *handover_message_room(struct handover_message *m, size_t len);
/* 0 or CSSL_E_NO_MEMORY. */
int handover_message_put(struct handover_message *m, const void *data, size_t len);
void handover_message_put_fd(struct handover_message *m, int fd);
/* The next of them, owned by the caller; -1: no more. */
int handover_message_take_fd(struct handover_message *m);
/* Wipe, free, close. */
void handover_message_clear(struct handover_message *m);

#endif
