/* heap_tide.h: gives memory back to the system when a burst is over. What many handshakes took at a time malloc keeps
 * as holes among what stays, for as long as the process lives.
 */
#ifndef CSSL_NET_HEAP_TIDE_H
#define CSSL_NET_HEAP_TIDE_H

#include <stdint.h>

#define HEAP_TIDE_HIGH     64u    /* so many at a time are a burst */
#define HEAP_TIDE_EVERY_MS 10000u /* while the system looks for pages that are free, a thread that allocates waits */

/* Embedded; zero: nothing was seen yet. */
struct heap_tide {
	uint32_t high; /* the most at a time since the last ebb */
	uint64_t not_before_ms;
};

/* @now of what comes in bursts are under way, and @peak were at most since the last call. 1: the burst is over and its
 * memory should go back; 0: not so. */
int heap_tide_is_over(struct heap_tide *t, uint32_t peak, uint32_t now, uint64_t now_ms);

/* Free pages of all threads' heaps go back to the system. How many bytes less the process has then. */
uint64_t heap_give_back(void);

#endif
