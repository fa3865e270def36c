/* h2_streams.c: a sorted array of numbers. A number is the stream's identifier without its lowest bit, plus two
 * bits. These say which half has ended, or that the backend promised the stream. Identifiers of clients ascend, so a
 * new one goes to the end.
 */
#include "sslagent/service/h2/h2_streams.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

enum standing { OPEN = 0, CLIENT_ENDED = 1, BACKEND_ENDED = 2, PROMISED = 3 };

static uint32_t number_of(uint32_t id, enum standing standing)
{
	return id >> 1 << 2 | standing;
}

static enum standing standing_of(uint32_t number)
{
	return (enum standing)(number & 3);
}

static uint32_t id_of(uint32_t number)
{
	return number >> 2 << 1 | (standing_of(number) != PROMISED);
}

static uint32_t *h2_streams_all(struct h2_streams *s)
{
	return s->many ? s->many : s->few;
}

/* The index of the first stream whose identifier is not below @id. */
static unsigned h2_streams_place_of(const struct h2_streams *s, uint32_t id)
{
	unsigned low = 0, high = s->count;

	if (high && id_of(h2_streams_get(s, high - 1)) < id)
		return high;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (id_of(h2_streams_get(s, middle)) < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct h2_streams *s, unsigned place, uint32_t id)
{
	return place < s->count && id_of(h2_streams_get(s, place)) == id;
}

static int h2_streams_grow(struct h2_streams *s)
{
	unsigned cap = s->many ? s->cap : H2_STREAMS_FEW;

	if (s->count < cap)
		return 0;
	if (cap >= H2_STREAMS_CAP)
		return CSSL_E_FULL;
	uint32_t *bigger = malloc(cap * 2 * sizeof *bigger);
	if (!bigger)
		return CSSL_E_NO_MEMORY;
	memcpy(bigger, h2_streams_all(s), s->count * sizeof *bigger);
	free(s->many);
	s->many = bigger;
	s->cap = (uint16_t)(cap * 2);
	return 0;
}

int h2_streams_open(struct h2_streams *s, uint32_t id)
{
	unsigned place = h2_streams_place_of(s, id);

	if (is_at(s, place, id))
		return 0;
	int r = h2_streams_grow(s);
	if (r < 0)
		return r;
	uint32_t *at = h2_streams_all(s) + place;
	memmove(at + 1, at, (s->count - place) * sizeof *at);
	*at = number_of(id, id & 1 ? OPEN : PROMISED);
	s->count++;
	return 0;
}

static void remove_at(struct h2_streams *s, unsigned place)
{
	uint32_t *at = h2_streams_all(s) + place;

	s->count--;
	memmove(at, at + 1, (s->count - place) * sizeof *at);
	if (s->count == 0)
		h2_streams_clear(s);
}

void h2_streams_end(struct h2_streams *s, uint32_t id, enum h2_half half)
{
	static const enum standing ended[] = { [H2_CLIENT_HALF] = CLIENT_ENDED, [H2_BACKEND_HALF] = BACKEND_ENDED };
	unsigned place = h2_streams_place_of(s, id);

	if (!is_at(s, place, id))
		return;
	enum standing now = standing_of(h2_streams_all(s)[place]);
	if (now == OPEN)
		h2_streams_all(s)[place] = number_of(id, ended[half]);
	else if (now == PROMISED ? half == H2_BACKEND_HALF : now != ended[half])
		remove_at(s, place);
}

void h2_streams_close(struct h2_streams *s, uint32_t id)
{
	unsigned place = h2_streams_place_of(s, id);

	if (is_at(s, place, id))
		remove_at(s, place);
}

void h2_streams_close_above(struct h2_streams *s, uint32_t id)
{
	for (unsigned i = s->count; i > 0; i--) {
		uint32_t number = h2_streams_get(s, i - 1);
		if (id_of(number) <= id)
			return;
		if (standing_of(number) != PROMISED)
			remove_at(s, i - 1);
	}
}

void h2_streams_clear(struct h2_streams *s)
{
	free(s->many);
	s->many = NULL;
	s->count = s->cap = 0;
}

bool h2_streams_has(const struct h2_streams *s, uint32_t id)
{
	return is_at(s, h2_streams_place_of(s, id), id);
}

uint32_t h2_streams_id(const struct h2_streams *s, unsigned n)
{
	return id_of(h2_streams_get(s, n));
}

uint32_t h2_streams_get(const struct h2_streams *s, unsigned n)
{
	return (s->many ? s->many : s->few)[n];
}

int h2_streams_put(struct h2_streams *s, uint32_t number)
{
	if (s->count && id_of(h2_streams_get(s, s->count - 1u)) >= id_of(number))
		return CSSL_E_RANGE;
	int r = h2_streams_grow(s);
	if (r < 0)
		return r;
	h2_streams_all(s)[s->count++] = number;
	return 0;
}
