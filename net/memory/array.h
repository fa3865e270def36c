/* array.h: an array that doubles when it is full. */
#pragma once

#include <stddef.h>

/* Room for one more item behind @count of them. @items: the address of the pointer to them, which realloc() may move,
 * so no secrets here. 0, or CSSL_E_NO_MEMORY: nothing changed. */
int array_make_room(void *items, size_t *cap, size_t count, size_t item_len);
