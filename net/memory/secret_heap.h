/* secret_heap.h: a heap for a library that keeps secrets wherever it likes, such as OpenSSL: the SSL struct has all
 * secrets of a handshake in it. And for objects of ours that come and go with them. Its memory is that of
 * net/memory/secret.h: left out of core dumps, locked as far as RLIMIT_MEMLOCK allows, wiped when freed. Thread-safe;
 * each thread takes blocks from slabs of its own, without a lock.
 *
 * Under sanitizers blocks come from malloc, so that they notice mistakes; they are wiped all the same.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Make OpenSSL of this process allocate here. Call it before OpenSSL allocates anything, else CSSL_E_STATE. Its secure
 * heap stays apart. */
int secret_heap_for_openssl(void);

void *secret_heap_alloc(size_t len);               /* NULL: @len is 0, or out of memory */
void *secret_heap_zalloc(size_t len);              /* the same, zeroed */
void *secret_heap_resize(void *block, size_t len); /* as realloc; @len 0 frees. What it leaves is wiped */
void secret_heap_free(void *block);                /* by any thread; NULL is legal */

/* Bytes of RAM that all threads' slabs have; 0 under sanitizers. */
uint64_t secret_heap_held(void);

enum secret_heap_rest {
	SECRET_HEAP_IS_SMALL,  /* at most 512 KiB of this thread's slabs is unused */
	SECRET_HEAP_HAS_SPARE, /* more; call it again */
};

/* Freed memory stays with its thread until then. Gives slabs back to the kernel that had no used block since the last
 * call, so call it some seconds after blocks were freed. */
enum secret_heap_rest secret_heap_trim(void);
