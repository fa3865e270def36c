/* buffers.h: a worker's spare buffers. Busy streams take and give them back without malloc; idle streams hold none.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define BUFFERS_MIN_LEN 1024u
#define BUFFERS_CLASSES 10u /* 1 KiB to 512 KiB, doubling; longer ones are freed at once */

struct buffers {
	struct buffers_class {
		struct buffers_spare *first;
		uint32_t count;
	} classes[BUFFERS_CLASSES];
};

/* At least @len bytes, *cap of them. NULL: out of memory. Give it back with the same *cap. */
void *buffers_take(struct buffers *b, size_t len, uint32_t *cap);
void buffers_give(struct buffers *b, void *buffer, uint32_t cap); /* NULL is legal */

/* Free the spare ones. */
void buffers_clear(struct buffers *b);
