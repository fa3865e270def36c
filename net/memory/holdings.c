/* holdings.c: lists by order of magnitude: a holder changes its list only when it holds twice as much or half. */
#include "net/memory/holdings.h"

void holdings_init(struct holdings *all, uint64_t limit)
{
	*all = (struct holdings){ .limit = limit };
	for (unsigned i = 0; i < HOLDINGS_ROWS; i++)
		TAILQ_INIT(&all->rows[i]);
}

static uint8_t row_of(size_t len)
{
	unsigned row = 0;

	for (len /= 1024; len > 0 && row < HOLDINGS_ROWS - 1; len /= 2)
		row++;
	return (uint8_t)row;
}

void holdings_set(struct holdings *all, struct holding *h, size_t len)
{
	uint32_t now = len < UINT32_MAX ? (uint32_t)len : UINT32_MAX;

	if (now == h->len)
		return;
	all->len += (uint64_t)now - h->len;
	h->len = now;
	uint8_t to = row_of(now);
	if (h->in.tqe_prev && now > 0 && to == h->row)
		return;
	if (h->in.tqe_prev)
		TAILQ_REMOVE(&all->rows[h->row], h, in);
	h->in.tqe_prev = NULL;
	h->row = to;
	if (now > 0)
		TAILQ_INSERT_TAIL(&all->rows[to], h, in);
}

struct holding *holdings_greatest(const struct holdings *all)
{
	if (all->limit == 0 || all->len <= all->limit)
		return NULL;
	for (unsigned row = HOLDINGS_ROWS; row-- > 0;)
		if (!TAILQ_EMPTY(&all->rows[row]))
			return TAILQ_FIRST(&all->rows[row]);
	return NULL;
}
