/* receiver_share.c: what is common to all destinations of one receiver. Who waits for an end is destination.c's work.
 */
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
