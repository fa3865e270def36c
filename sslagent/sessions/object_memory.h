/* object_memory.h: memory for encoded SESS_OBJs, which hold keys: wiped when freed, kept out of core dumps. Blocks come
 * from slabs of a few sizes; a larger object is rare and is allocated by itself. Not thread-safe: each user has its
 * own under its own lock. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct object_memory;

struct object_memory *object_memory_create(void);
void object_memory_destroy(struct object_memory *m); /* every object must have been freed */

/* The memory that an object of @len bytes takes, for the accounts of its holder. */
size_t object_memory_cost(size_t len);

/* NULL: out of memory. */
void *object_alloc(struct object_memory *m, size_t len);
void object_free(struct object_memory *m, void *object, size_t len); /* NULL is legal */
