/* link_handover.h: a link goes on in another process. Packed are its descriptor, its ciphers, its unused input and its
 * unwritten output. Packing destroys nothing: until the other process has taken everything, the link can go on here.
 */
#pragma once

#include "net/stream/framed.h"
#include "proto/wire.h"

struct link;

/* If the link would be lost at the end of this turn, lose it now. true: it is lost, and others may have to end
 * because of it. Do not call it while a callback of the link runs. */
bool link_settle(struct link *l);

/* Freeze an open link: it seals and opens nothing until link_resume() or link_leave(). @saved is key material. 0, or
 * negative: the link is broken. */
int link_freeze(struct link *l, struct framed_saved *saved);
void link_resume(struct link *l);

/* The descriptors that go with a link's bytes, in this order. */
struct link_descriptors {
	int socket;
	int memory; /* -1: its bytes go on the socket */
	int pidfd;  /* of the agent's process; -1: unknown, or the other process does not read it */
};

/* For a frozen link. link_descriptors(): its descriptors; the link still owns them. link_pack(): the bytes (key
 * material) for exactly these descriptors. If the other process reads no pidfd, remove it before link_pack(). */
struct link_descriptors link_descriptors(const struct link *l);
size_t link_packed_len(const struct link *l);
void link_pack(const struct link *l, const struct link_descriptors *d, const struct framed_saved *saved,
	struct wire_writer *w);

/* Continue a parked link from @in, without streams. Its descriptors are the @count at @fds; the link owns them from now
 * on. 0, or negative: it stays parked and the descriptors are closed. It reads and writes nothing before the next loop
 * turn. */
#define LINK_DESCRIPTORS_MAX 3u
int link_unpack(struct link *l, const int *fds, unsigned count, const uint8_t *in, size_t len);
/* Continue a stream that the other process had begun. 0; CSSL_E_RANGE: no such stream can exist; CSSL_E_NO_MEMORY. */
int link_stream_continue(struct link *l, uint32_t stream, void *holder);
