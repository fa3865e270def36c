/* secret_heap.h: a heap for a library that keeps secrets wherever it likes, such as OpenSSL: the SSL struct has all
 * secrets of a handshake in it. Its memory is like an arena's: left out of core dumps, locked as far as RLIMIT_MEMLOCK
 * allows, wiped when freed. Thread-safe; each thread takes blocks from slabs of its own, without a lock.
 *
 * Under sanitizers blocks come from malloc, so that they notice mistakes; they are wiped all the same.
 */
#ifndef CSSL_NET_SECRET_HEAP_H
#define CSSL_NET_SECRET_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* Make OpenSSL of this process allocate here. Call it before OpenSSL allocates anything, else CSSL_E_STATE. Its secure
 * heap stays apart. */
int secret_heap_for_openssl(void);

void *secret_heap_alloc(size_t len);               /* NULL: @len is 0, or out of memory */
void *secret_heap_resize(void *block, size_t len); /* as realloc; @len 0 frees. What it leaves is wiped */
void secret_heap_free(void *block);                /* by any thread; NULL is legal */

/* Bytes of RAM that all threads' slabs have; 0 under sanitizers. */
uint64_t secret_heap_held(void);

#endif
