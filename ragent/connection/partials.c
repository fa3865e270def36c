/* partials.c: a list in order of time: a record that begins goes to its end. The client that holds back a record
 * longest goes first, because honest clients finish theirs.
 */
#include "ragent/connection/partials.h"

void partials_init(struct partials *all, size_t budget)
{
	*all = (struct partials){ .newest = &all->oldest, .budget = budget };
}

static void leave(struct partials *all, struct partial *p)
{
	*p->prev = p->next;
	if (p->next)
		p->next->prev = p->prev;
	else
		all->newest = p->prev;
	all->len -= p->len;
	*p = (struct partial){ 0 };
}

static void join(struct partials *all, struct partial *p, uint64_t now_ms)
{
	p->since_ms = now_ms;
	p->prev = all->newest;
	*all->newest = p;
	all->newest = &p->next;
}

void partials_note(struct partials *all, struct partial *p, size_t len, enum partial_record record, uint64_t now_ms)
{
	if (p->prev && (len == 0 || record == PARTIAL_NEW_RECORD))
		leave(all, p);
	if (len == 0)
		return;
	if (!p->prev)
		join(all, p, now_ms);
	all->len += len - p->len;
	p->len = (uint32_t)len;
}

struct partial *partials_victim(const struct partials *all, uint64_t now_ms)
{
	struct partial *p = all->oldest;

	return p && (all->len > all->budget || now_ms - p->since_ms > PARTIALS_LIMIT_MS) ? p : NULL;
}
