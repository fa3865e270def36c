/* copies.c: one current and one pending sealed copy. This file cannot read them; it compares only their generations. */
#include "ragent/connection/copies.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

static int blob_create(
	const uint8_t *data, size_t len, uint32_t read_generation, uint32_t write_generation, struct sealed_blob **out)
{
	if (len > COPY_MAX_LEN)
		return CSSL_E_TOO_LONG;
	struct sealed_blob *b = malloc(sizeof *b + len);
	if (!b)
		return CSSL_E_NO_MEMORY;
	b->read_generation = read_generation;
	b->write_generation = write_generation;
	b->len = (uint32_t)len;
	memcpy(b->data, data, len);
	*out = b;
	return 0;
}

static int replace(struct sealed_blob **place, const uint8_t *data, size_t len, uint32_t read_generation,
	uint32_t write_generation)
{
	struct sealed_blob *b;

	if (len == 0)
		return 0;
	int r = blob_create(data, len, read_generation, write_generation, &b);
	if (r < 0)
		return r;
	free(*place);
	*place = b;
	return 0;
}

int copies_set(struct copies *c, const uint8_t *data, size_t len, uint32_t read_generation, uint32_t write_generation)
{
	int r = replace(&c->current, data, len, read_generation, write_generation);

	if (r < 0 || len == 0)
		return r;
	free(c->pending); /* it is older than the one that came now */
	c->pending = NULL;
	return 0;
}

int copies_offer(struct copies *c, const uint8_t *data, size_t len, uint32_t read_generation, uint32_t write_generation)
{
	return replace(&c->pending, data, len, read_generation, write_generation);
}

int copies_commit(struct copies *c, const struct position *p)
{
	if (!c->pending || !position_reached(p, c->pending->read_generation, c->pending->write_generation))
		return 0;
	free(c->current);
	c->current = c->pending;
	c->pending = NULL;
	return 1;
}

void copies_clear(struct copies *c)
{
	free(c->current);
	free(c->pending);
	c->current = c->pending = NULL;
}
