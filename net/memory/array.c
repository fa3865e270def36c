/* array.c: one realloc() in place of many. */
#include "net/memory/array.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

#define FIRST 16u

int array_make_room(void *items, size_t *cap, size_t count, size_t item_len)
{
	size_t more = *cap ? *cap * 2 : FIRST;
	void *old, *bigger;

	if (count < *cap)
		return 0;
	memcpy(&old, items, sizeof old);
	bigger = realloc(old, more * item_len);
	if (!bigger)
		return CSSL_E_NO_MEMORY;
	memcpy(items, &bigger, sizeof bigger);
	*cap = more;
	return 0;
}
