/* random_pool.h: libsodium's random bytes (randombytes_buf and all that use it), fetched from the kernel some at a
 * time: a call of the kernel for each nonce or identifier costs more than what is made with it. Each thread has a pool
 * of its own. What was handed out is wiped from it. The kernel empties a pool in a forked process (MADV_WIPEONFORK), so
 * no two processes ever get the same bytes; where it cannot, every request goes to the kernel. */
#pragma once

#include <stdint.h>

/* For all threads of the process. Call it before sodium_init() and before other threads begin. 0 or CSSL_E_STATE. */
int random_pool_begin(void);

/* The number of the present 10 s. What was drawn ahead in another period is not used any more. */
uint32_t random_period(void);
