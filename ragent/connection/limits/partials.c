/* partials.c: a list in order of time: a record that begins goes to its end. The client that holds back a record
 * longest goes first, because honest clients finish theirs.
 */
#include "ragent/connection/limits/partials.h"

void partials_init(struct partials *all, size_t budget)
{
	*all = (struct partials){ .budget = budget };
	TAILQ_INIT(&all->by_age);
}

void partials_note(struct partials *all, struct partial *p, size_t len, enum partial_record record, uint64_t now_ms)
{
	if (p->len && (len == 0 || record == PARTIAL_NEW_RECORD)) {
		TAILQ_REMOVE(&all->by_age, p, link);
		all->len -= p->len;
		p->len = 0;
	}
	if (len == 0)
		return;
	if (p->len == 0) {
		p->since_ms = now_ms;
		TAILQ_INSERT_TAIL(&all->by_age, p, link);
	}
	all->len += len - p->len;
	p->len = (uint32_t)len;
}

struct partial *partials_victim(const struct partials *all, uint64_t now_ms)
{
	struct partial *p = TAILQ_FIRST(&all->by_age);

	return p && (all->len > all->budget || now_ms - p->since_ms > PARTIALS_LIMIT_MS) ? p : NULL;
}
