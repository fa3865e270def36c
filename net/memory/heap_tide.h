/* heap_tide.h: gives memory back to the system after a burst. Without that, malloc keeps the memory of a burst of
 * handshakes as holes between longer-lived blocks, for the life of the process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HEAP_TIDE_HIGH     64u /* so many at the same time are a burst */
/* Memory goes back at most once in this time: meanwhile other threads that allocate have to wait. */
#define HEAP_TIDE_EVERY_MS 10000u

/* Embedded, all zero at first. */
struct heap_tide {
	uint32_t high; /* the most at the same time since the end of the last burst */
	uint64_t not_before_ms;
};

/* @now things are under way, and at most @peak were since the last call. 1: a burst has ended, its memory should go
 * back. 0: not. */
bool heap_tide_is_over(struct heap_tide *t, uint32_t peak, uint32_t now, uint64_t now_ms);

/* How much memory of this process is in RAM; 0: the kernel does not say. */
uint64_t resident_bytes(void);

/* Give the free pages of all threads' heaps back to the system. Returns by how many bytes the process became smaller.
 */
uint64_t heap_give_back(void);
