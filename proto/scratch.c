/* scratch.c: an allocation moves a mark; freeing a single piece does nothing. */
#include "proto/scratch.h"

#include <openssl/crypto.h>

#include "proto/error.h"

#define ALIGNMENT 16u

static void *scratch_take(void *data, size_t len)
{
	struct scratch *s = data;
	size_t room = (size_t)(s->end - s->at);
	uint8_t *piece = s->at;

	if (len > room - room % ALIGNMENT) {
		s->refused = len;
		return NULL;
	}
	s->at += (len + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	return piece;
}

static void scratch_give_back(void *data, void *piece)
{
}

int scratch_open(struct scratch *s, size_t cap)
{
	s->allocator = (ProtobufCAllocator){ .alloc = scratch_take, .free = scratch_give_back, .allocator_data = s };
	s->start = cap <= SCRATCH_INSIDE ? s->inside : OPENSSL_malloc(cap);
	if (!s->start)
		return CSSL_E_NO_MEMORY;
	s->at = s->start;
	s->end = s->start + cap;
	s->refused = 0;
	return 0;
}

void scratch_close(struct scratch *s)
{
	const size_t used = (size_t)(s->at - s->start);

	if (s->start == s->inside)
		OPENSSL_cleanse(s->start, used);
	else
		OPENSSL_clear_free(s->start, used);
	s->start = s->at = s->end = NULL;
}
