/* rings.h: bytes between two processes of one host through memory that both have mapped: a ring each way, one writer
 * and one reader per ring. Nothing here waits or wakes; who uses it has a socket for that (stream_shared.c), and is
 * told when the other side has to be woken.
 *
 * A page of positions, then the two rings. Each ring is mapped twice in a row, so that what is in it, or room for more,
 * always is one piece. Positions count bytes and wrap around at 2^32; a ring's writer moves `tail`, its reader `head`.
 * Either side keeps its own positions to itself and checks those of the other: what the other process writes into this
 * memory, at whatever moment, can spoil its bytes and no more. Its size is sealed, so it cannot be cut from under us.
 */
#ifndef CSSL_NET_RINGS_H
#define CSSL_NET_RINGS_H

#include <stddef.h>
#include <stdint.h>

#define RINGS_LEN (256u * 1024u) /* bytes of each ring */

/* The maker writes into the ring that the taker reads, and the other way round. */
enum rings_side { RINGS_MAKER, RINGS_TAKER };

struct rings;

/* New memory, empty rings: a descriptor, to be passed to the other side. Negative: libuv error. */
int rings_make(void);

/* Map it; @fd is owned from now on, whatever comes. Goes on where the memory says that this side stopped. 0 with *out,
 * or a negative libuv error; UV_EPROTO: this is no such memory. */
int rings_open(int fd, enum rings_side side, struct rings **out);
void rings_close(struct rings *r); /* NULL is legal */
int rings_fd(const struct rings *r);

/* Writing. Room that is free now, one piece, valid until the next rings_publish(). */
uint8_t *rings_room(struct rings *r, size_t *len);
/* The first @len bytes of the room are written. 1: the reader sleeps and has to be woken; 0: it does not. */
int rings_publish(struct rings *r, size_t len);
/* All room is used: the reader will wake this side when half of it is free. 1: it is already. */
int rings_wait_for_room(struct rings *r);
/* Has it to wait for that still? */
int rings_waits_for_room(struct rings *r);

/* Reading. What is there, one piece, valid until rings_used(); it can change under the reader. NULL: the writer's
 * position cannot be, nothing of this memory is to be believed. */
const uint8_t *rings_input(struct rings *r, size_t *len);
int rings_has_input(struct rings *r);
/* The first @len bytes of it were read. 1: the writer waits for room and has to be woken; 0: it does not. */
int rings_used(struct rings *r, size_t len);
/* Nothing is left to read: the writer will wake this side for more. 1: more is there already, and it does not. */
int rings_sleep(struct rings *r);
/* Awake: the writer need not do so. */
void rings_stay_awake(struct rings *r);

#endif
