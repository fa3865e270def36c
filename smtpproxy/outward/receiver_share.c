/* receiver_share.c: the state that all destinations of one receiver share, and the list of those that wait for it. */
#include "smtpproxy/outward/receiver_share.h"

#include "smtpproxy/outward/destination.h"

void receiver_share_init(struct receiver_share *s, uint64_t now_ms)
{
	receiver_limit_init(&s->limit, UINT32_MAX, now_ms); /* until the first destination knows the file's */
	TAILQ_INIT(&s->waiting);
	LIST_INIT(&s->members);
}

bool receiver_share_wait(struct destination *d)
{
	if (d->wait == DESTINATION_WAITS || d->share == &d->own)
		return false;
	if (d->wait == DESTINATION_WOKEN)
		TAILQ_INSERT_HEAD(&d->share->waiting, d, share_next);
	else
		TAILQ_INSERT_TAIL(&d->share->waiting, d, share_next);
	d->wait = DESTINATION_WAITS;
	return true;
}

void receiver_share_wait_no_more(struct destination *d)
{
	if (d->wait == DESTINATION_WAITS)
		TAILQ_REMOVE(&d->share->waiting, d, share_next);
	d->wait = DESTINATION_WAITS_NOT;
}

struct destination *receiver_share_wake(struct receiver_share *s)
{
	struct destination *d = TAILQ_FIRST(&s->waiting);
	if (!d)
		return NULL;
	receiver_share_wait_no_more(d);
	d->wait = DESTINATION_WOKEN;
	return d;
}

bool receiver_share_is_wanted(const struct destination *d)
{
	const struct destination *first = TAILQ_FIRST(&d->share->waiting);
	return first && (first != d || TAILQ_NEXT(first, share_next));
}
