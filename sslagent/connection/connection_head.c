/* connection_head.c: the time limit of a request's head (services that follow requests). A client that says its request
 * byte by byte would else keep a connection, and its backend's, for as long as it likes.
 *
 * The connection's deadline is for reports first: when none is due, it is the head's.
 */
#include "net/log_pace.h"
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"

void connection_arm_head(struct connection *c)
{
	uint64_t now_ms = worker_now_ms(c->home->worker);

	if (c->head_until_ms == 0 || c->report != REPORT_NOTHING || !connection_serves(c))
		return;
	deadline_set(c->home->worker, &c->deadline, c->head_until_ms > now_ms ? c->head_until_ms - now_ms : 1);
}

void connection_watch_head(struct connection *c)
{
	uint32_t limit_ms = c->home->conf->limits.request_head_timeout_ms;
	uint32_t number = limit_ms && connection_serves(c) ? service_head_under_way(&c->service) : 0;

	if (number == 0 && c->head_until_ms == 0)
		return;
	if (number == 0) {
		c->head_until_ms = 0;
		if (c->report == REPORT_NOTHING)
			deadline_cancel(&c->deadline);
		return;
	}
	if (c->head_until_ms == 0 || number != c->head_number)
		c->head_until_ms = worker_now_ms(c->home->worker) + limit_ms;
	c->head_number = number;
	connection_arm_head(c);
}

/* While earlier answers are running, the client rightly waits for them: its request gets its full time again. */
void connection_head_is_late(struct connection *c)
{
	c->head_until_ms = 0;
	if (!connection_serves(c) || service_head_under_way(&c->service) == 0)
		return;
	if (service_outstanding(&c->service) > 1) {
		connection_watch_head(c);
		return;
	}
	count(COUNT_REQUEST_HEADS_LATE);
	log_paced(LOG_INFO, &c->id, "request head late", "limit_ms=%u", c->home->conf->limits.request_head_timeout_ms);
	connection_finish(c, LAST_HEAD_LATE, END_IDLE_TIMEOUT);
}
