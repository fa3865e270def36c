/* secret.h: memory for key bytes: left out of core dumps (MADV_DONTDUMP), locked as far as RLIMIT_MEMLOCK allows (one
 * warning and a gauge tell if not), and wiped on free. Many objects of one size come from slabs (slabs_init_secret()).
 * Keys that live as long as the process use sodium_malloc instead. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* One large object in its own pages: zeroed, or NULL. For the few objects that live as long as a worker. */
void *secret_alloc(size_t len);
void secret_free(void *object, size_t len); /* wiped; NULL is legal */

/* From now on these pages get secrets. Bytes that are locked: @len, or 0. */
size_t secret_protect(void *at, size_t len);
/* Only lock them: @len, or 0. Before @len of them, @locked of which are locked, are unmapped:
 * secret_unlock(). Thread-safe. */
size_t secret_lock(void *at, size_t len);
void secret_unlock(size_t len, size_t locked);
/* Of all that this process wanted to lock; objects of secret_alloc() count even after they were freed. */
uint64_t secret_unlocked_bytes(void);
/* Warn once. secret_protect() does so by itself. */
void secret_warn_if_unlocked(void);
