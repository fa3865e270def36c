/* receiver_share.c: what is common to all destinations of one receiver, and which of them wait for it. */
#include "smtpproxy/outward/outward.h"

void receiver_share_init(struct receiver_share *s, uint64_t now_ms)
{
	receiver_limit_init(&s->limit, UINT32_MAX, now_ms); /* until the first destination knows the file's */
	TAILQ_INIT(&s->waiting);
}

uint32_t receiver_share_connections(const struct receiver_share *s)
{
	uint32_t all = 0;
	for (unsigned i = 0; i < DESTINATION_PLACES; i++)
		all += s->in[i];
	return all;
}

void receiver_share_wait(struct destination *d)
{
	if (d->wait == DESTINATION_WAITS || d->share == &d->own)
		return;
	d->wait = DESTINATION_WAITS;
	TAILQ_INSERT_TAIL(&d->share->waiting, d, share_next);
}

void receiver_share_wait_no_more(struct destination *d)
{
	if (d->wait == DESTINATION_WAITS)
		TAILQ_REMOVE(&d->share->waiting, d, share_next);
	d->wait = DESTINATION_WAITS_NOT;
}

void receiver_share_wake(struct receiver_share *s)
{
	struct destination *d;
	while ((d = TAILQ_FIRST(&s->waiting))) {
		receiver_share_wait_no_more(d);
		destination_ask_for_step(d);
	}
}
