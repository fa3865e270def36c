/* heap_tide.c: detects the end of a burst; malloc_trim() also gives back free pages between blocks in use. */
#include "net/heap_tide.h"

#include <malloc.h>

#include "net/resident.h"

int heap_tide_is_over(struct heap_tide *t, uint32_t peak, uint32_t now, uint64_t now_ms)
{
	if (peak > t->high)
		t->high = peak;
	if (t->high < HEAP_TIDE_HIGH || now > t->high / 4 || now_ms < t->not_before_ms)
		return 0;
	t->high = now;
	t->not_before_ms = now_ms + HEAP_TIDE_EVERY_MS;
	return 1;
}

uint64_t heap_give_back(void)
{
	uint64_t before = resident_bytes();

	malloc_trim(0);
	uint64_t after = resident_bytes();
	return before > after ? before - after : 0;
}
