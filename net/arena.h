/* arena.h: the secrets arena of a worker: slabs of equal blocks for key bytes, MADV_DONTDUMP, mlock as far as
 * RLIMIT_MEMLOCK allows (one warning, one gauge), wiped on free. Long-lived keys use sodium_malloc instead. */
#ifndef CSSL_NET_ARENA_H
#define CSSL_NET_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena;

/* @block_len: size of every block, at most 4096. Not thread-safe: one per worker. */
struct arena *arena_create(size_t block_len);
void *arena_alloc(struct arena *a);            /* zeroed; NULL: out of memory */
void arena_free(struct arena *a, void *block); /* wiped; NULL is legal */
size_t arena_blocks(const struct arena *a);    /* handed out */
size_t arena_locked_bytes(const struct arena *a);
void arena_destroy(struct arena *a); /* every block must have been freed */

/* One large object of the same kind of memory, in pages of its own: zeroed, or NULL. For the few that last as long as a
 * worker. */
void *secret_alloc(size_t len);
void secret_free(void *object, size_t len); /* wiped; NULL is legal */

#endif
