/* buffers.c: free lists by power of two, last in first out so that a busy worker writes into memory its cache still
 * has. */
#include <stdlib.h>

#include "net/memory/buffers.h"

#define BUFFERS_LEN_LIMIT (UINT32_C(1) << 30)

/* The most bytes that a class may hold back. Sanitizers see every use after free when nothing is held. */
#ifdef CSSL_SANITIZED
#define BUFFERS_SPARE_LEN 0u
#else
#define BUFFERS_SPARE_LEN (2u * 1024u * 1024u)
#endif

struct buffers_spare {
	struct buffers_spare *next;
};

static unsigned class_of(size_t len)
{
	unsigned class = 0;

	while (len > (size_t)BUFFERS_MIN_LEN << class)
		class ++;
	return class;
}

void *buffers_take(struct buffers *b, size_t len, uint32_t *cap)
{
	if (len > BUFFERS_LEN_LIMIT)
		return NULL;

	unsigned class = class_of(len);
	*cap = BUFFERS_MIN_LEN << class;
	if (class >= BUFFERS_CLASSES || !b->classes[class].first)
		return malloc(*cap);

	struct buffers_spare *spare = b->classes[class].first;
	b->classes[class].first = spare->next;
	b->classes[class].count--;
	return spare;
}

void buffers_give(struct buffers *b, void *buffer, uint32_t cap)
{
	if (!buffer)
		return;

	unsigned class = class_of(cap);
	if (class >= BUFFERS_CLASSES || (b->classes[class].count + 1) * (size_t)cap > BUFFERS_SPARE_LEN) {
		free(buffer);
		return;
	}
	struct buffers_spare *spare = buffer;
	spare->next = b->classes[class].first;
	b->classes[class].first = spare;
	b->classes[class].count++;
}

void buffers_clear(struct buffers *b)
{
	for (unsigned class = 0; class < BUFFERS_CLASSES; class ++) {
		struct buffers_spare *spare = b->classes[class].first;
		while (spare) {
			struct buffers_spare *next = spare->next;
			free(spare);
			spare = next;
		}
		b->classes[class] = (struct buffers_class){ 0 };
	}
}
