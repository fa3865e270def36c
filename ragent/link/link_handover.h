/* link_handover.h: a link goes on in another process: its descriptor, its ciphers, what it had read and not used, what
 * it had not written. Nothing is destroyed by packing: until the other process has taken everything, the link can go on
 * here.
 */
#ifndef CSSL_RAGENT_LINK_HANDOVER_H
#define CSSL_RAGENT_LINK_HANDOVER_H

#include "net/framed.h"
#include "proto/wire.h"
#include "ragent/link/link.h"

/* What ends at the end of this turn ends now. 1: it did, and others may have to end because of it; 0: nothing. Not
 * while one of its callbacks runs. */
int link_settle(struct link *l);

/* The link is open. From now on it seals and opens nothing, until link_resume() or link_park(). @saved is key material.
 * 0 or negative: it is broken. */
int link_freeze(struct link *l, struct framed_saved *saved);
void link_resume(struct link *l);

/* What goes along with a link's bytes, in this order. */
struct link_descriptors {
	int socket;
	int memory; /* -1: its bytes go on the socket */
	int pidfd;  /* of the agent's process; -1: unknown, or the other process does not read it */
};

/* Of a frozen link: the descriptors, which stay the link's, and the bytes (key material) that go with exactly these.
 * A pidfd that the other process does not read is to be left out before link_pack(). */
struct link_descriptors link_descriptors(const struct link *l);
size_t link_packed_len(const struct link *l);
void link_pack(const struct link *l, const struct link_descriptors *d, const struct framed_saved *saved,
	struct wire_writer *w);
int link_memory_fd(const struct link *l); /* -1: its bytes go on the socket */

/* A parked link goes on from there, with no streams yet. Its descriptors are the @count at @fds, owned from now on. 0,
 * or negative: it stays parked, they are closed. Nothing is read or written before the loop turns. */
#define LINK_DESCRIPTORS_MAX 3u
int link_unpack(struct link *l, const int *fds, unsigned count, const uint8_t *in, size_t len);
/* A stream on it that the other process had begun. 0, CSSL_E_RANGE: no such one can be, CSSL_E_NO_MEMORY. */
int link_stream_continue(struct link *l, uint32_t stream, void *holder);

#endif
