/* receiver_share.c: the state that all destinations of one receiver share, and the list of those that wait for it. */
#include "smtpproxy/outward/outward.h"

void receiver_share_init(struct receiver_share *s, uint64_t now_ms)
{
	receiver_limit_init(&s->limit, UINT32_MAX, now_ms); /* until the first destination knows the file's */
	TAILQ_INIT(&s->waiting);
	LIST_INIT(&s->members);
}

uint32_t receiver_share_connections(const struct receiver_share *s)
{
	uint32_t all = 0;
	for (unsigned i = 0; i < DESTINATION_PLACES; i++)
		all += s->in[i];
	return all;
}

static void end_idle_ones(const struct destination *for_d)
{
	struct destination *d;
	if (for_d->share->in[DESTINATION_IDLE] == 0)
		return;
	LIST_FOREACH(d, &for_d->share->members, member_next)
	{
		if (d != for_d && d->turns.count == 0)
			destination_retire_idle(d);
	}
}

void receiver_share_wait(struct destination *d)
{
	if (d->wait == DESTINATION_WAITS || d->share == &d->own)
		return;
	if (d->wait == DESTINATION_WOKEN)
		TAILQ_INSERT_HEAD(&d->share->waiting, d, share_next);
	else
		TAILQ_INSERT_TAIL(&d->share->waiting, d, share_next);
	d->wait = DESTINATION_WAITS;
	end_idle_ones(d);
}

void receiver_share_wait_no_more(struct destination *d)
{
	if (d->wait == DESTINATION_WAITS)
		TAILQ_REMOVE(&d->share->waiting, d, share_next);
	d->wait = DESTINATION_WAITS_NOT;
}

void receiver_share_wake(struct receiver_share *s)
{
	struct destination *d = TAILQ_FIRST(&s->waiting);
	if (!d)
		return;
	receiver_share_wait_no_more(d);
	d->wait = DESTINATION_WOKEN;
	destination_ask_for_step(d);
}

bool receiver_share_is_wanted(const struct destination *d)
{
	const struct destination *first = TAILQ_FIRST(&d->share->waiting);
	return first && (first != d || TAILQ_NEXT(first, share_next));
}
