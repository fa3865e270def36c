/* arena.h: the memory of a worker for key bytes: slabs of equal blocks, left out of core dumps (MADV_DONTDUMP), locked
 * as far as RLIMIT_MEMLOCK allows (one warning and a gauge tell if not), and wiped on free. Keys that live as long as
 * the process use sodium_malloc instead. */
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

/* One large object in the same kind of memory, in its own pages: zeroed, or NULL. For the few objects that live as long
 * as a worker. */
void *secret_alloc(size_t len);
void secret_free(void *object, size_t len); /* wiped; NULL is legal */

/* Lock pages that get secrets: @len, or 0. Before @len of them, @locked of which are locked, are unmapped:
 * secret_unlock(). Thread-safe. */
size_t secret_lock(void *at, size_t len);
void secret_unlock(size_t len, size_t locked);
/* Of all that this process wanted to lock; objects of secret_alloc() count even after they were freed. */
uint64_t secret_unlocked_bytes(void);
/* Warn once. Arenas and secret_alloc() do so by themselves. */
void secret_warn_if_unlocked(void);

#endif
