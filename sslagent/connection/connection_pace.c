/* connection_pace.c: a client that changes its keys too often is read only as fast as it may change them. Were its
 * connection ended at once, the next one would cost a handshake, which is dearer than what the limit spares.
 *
 * Its records wait meanwhile. A KeyUpdate is short, so a whole window of them is thousands: who sends so many that they
 * cannot be meant is ended.
 */
#include "sslagent/connection/connection_internal.h"

#define PACED_RECORDS_MAX 256u

uint64_t connection_paced_ms(const struct connection *c)
{
	return c->live ? live_key_update_wait_ms(c->live, worker_now_ms(c->home->worker)) : 0;
}

void connection_watch_pace(struct connection *c)
{
	if (!connection_serves(c) || c->input_len == 0 || connection_paced_ms(c) == 0)
		return;
	if (c->input_records > PACED_RECORDS_MAX) {
		connection_violated(c, TLS_ALERT_UNEXPECTED_MESSAGE, END_KEY_UPDATE_FLOOD);
		return;
	}
	connection_arm(c);
}
