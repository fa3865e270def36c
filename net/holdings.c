/* holdings.c: lists by order of magnitude: a holder changes its list only when it holds twice as much or half. */
#include "net/holdings.h"

void holdings_init(struct holdings *all, uint64_t limit)
{
	*all = (struct holdings){ .limit = limit };
	for (unsigned i = 0; i < HOLDINGS_ROWS; i++)
		all->rows[i].last = &all->rows[i].first;
}

static uint8_t row_of(size_t len)
{
	unsigned row = 0;

	for (len /= 1024; len > 0 && row < HOLDINGS_ROWS - 1; len /= 2)
		row++;
	return (uint8_t)row;
}

static void leave(struct holdings *all, struct holding *h)
{
	struct holdings_row *row = &all->rows[h->row];

	*h->prev = h->next;
	if (h->next)
		h->next->prev = h->prev;
	else
		row->last = h->prev;
	h->next = NULL;
	h->prev = NULL;
}

static void enter(struct holdings *all, struct holding *h, uint8_t to)
{
	struct holdings_row *row = &all->rows[to];

	h->row = to;
	h->next = NULL;
	h->prev = row->last;
	*row->last = h;
	row->last = &h->next;
}

void holdings_set(struct holdings *all, struct holding *h, size_t len)
{
	uint32_t now = len < UINT32_MAX ? (uint32_t)len : UINT32_MAX;

	if (now == h->len)
		return;
	all->len += (uint64_t)now - h->len;
	h->len = now;
	uint8_t to = row_of(now);
	if (h->prev && now > 0 && to == h->row)
		return;
	if (h->prev)
		leave(all, h);
	if (now > 0)
		enter(all, h, to);
}

struct holding *holdings_greatest(const struct holdings *all)
{
	if (all->limit == 0 || all->len <= all->limit)
		return NULL;
	for (unsigned row = HOLDINGS_ROWS; row-- > 0;)
		if (all->rows[row].first)
			return all->rows[row].first;
	return NULL;
}
