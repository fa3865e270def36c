/* rings.h: bytes between two processes of one host through memory that both map: one ring for each direction, with one
 * writer and one reader. Nothing here waits or wakes. The caller has a socket for that (stream_shared.c); the results
 * below tell it when to wake the other side.
 *
 * The memory is a page of positions and the two rings. Each ring is mapped twice in a row, so that its content and its
 * room are each one piece. Positions count bytes and wrap around at 2^32. The writer of a ring moves `tail`, the reader
 * `head`. Each side keeps its own positions in private memory and checks those of the other side. So a hostile process
 * can spoil the bytes that it sends, and nothing else, at whatever moment it writes. The size of the memory is sealed,
 * so no process can shrink it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RINGS_LEN (256u * 1024u) /* bytes of each ring */

/* The maker writes into the ring that the taker reads, and the other way round. */
enum rings_side { RINGS_MAKER, RINGS_TAKER };

struct rings;

/* Make memory with empty rings. Returns its descriptor, for the other side. Negative: libuv error. */
int rings_make(void);

/* Map the memory behind @fd, which this call takes over even when it fails. Continues at the positions in the memory. 0
 * with *out, or a negative libuv error; UV_EPROTO: not the memory of rings. */
int rings_open(int fd, enum rings_side side, struct rings **out);
void rings_close(struct rings *r); /* NULL is legal */
int rings_fd(const struct rings *r);

/* Writing: the free room, one piece, valid until the next rings_stage() or rings_publish(). */
uint8_t *rings_room(struct rings *r, size_t *len);
/* The caller has written the first @len bytes of the room. The reader sees them after rings_publish(). */
void rings_stage(struct rings *r, size_t len);
/* Bytes that were staged and not published. */
size_t rings_staged(const struct rings *r);
/* The same, and publish them and all that were staged. 1: wake the reader; 0: it is awake. */
bool rings_publish(struct rings *r, size_t len);
/* There is no room: ask the reader to wake this side when half of it is free. 1: it is free already. */
bool rings_wait_for_room(struct rings *r);
/* Does this side still wait for that? */
bool rings_waits_for_room(struct rings *r);

/* Reading: the bytes that are there, one piece, valid until rings_used(). The writer can change them meanwhile. NULL:
 * the writer's position is impossible in an honest peer; treat the whole ring as hostile and drop the link. */
const uint8_t *rings_input(struct rings *r, size_t *len);
bool rings_has_input(struct rings *r);
/* The caller has used the first @len bytes. 1: wake the writer, which waits for room; 0: it does not wait. */
bool rings_used(struct rings *r, size_t len);
/* Nothing is left to read: ask the writer to wake this side for more. 1: more is there already, and the writer will
 * not. */
bool rings_sleep(struct rings *r);
/* This side stays awake; the writer need not wake it. */
void rings_stay_awake(struct rings *r);
