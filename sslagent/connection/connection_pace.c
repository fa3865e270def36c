/* connection_pace.c: a client that changes its keys too often is read only as fast as it may change them: after such a
 * KeyUpdate its next record waits. Were its connection ended at once, the next one would cost a handshake, which is
 * dearer than what the limit spares. One that goes on like that is ended (live.h).
 *
 * The carrier is told, so that RAgent reads nothing more of the client meanwhile. It is told again when records are
 * opened, unless the next one that is here already makes the client wait again.
 *
 * A successor opens what the lost owner had got without waiting; a tenth KeyUpdate among it ends the connection. Then
 * it waits as the owner had to.
 */
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"

static uint64_t wait_ms(const struct connection *c)
{
	return live_key_update_wait_ms(c->live, worker_now_ms(c->home->worker));
}

void connection_judge_pace(struct connection *c)
{
	if (!connection_serves(c) || wait_ms(c) == 0)
		return;
	c->client_pace = CLIENT_WAITS;
	count(COUNT_KEY_UPDATES_PACED);
	connection_arm(c);
}

uint64_t connection_paced_until_ms(const struct connection *c)
{
	return c->client_pace == CLIENT_WAITS ? worker_now_ms(c->home->worker) + wait_ms(c) : UINT64_MAX;
}

void connection_end_pace(struct connection *c)
{
	if (c->client_pace == CLIENT_GOES_ON || !connection_serves(c) || wait_ms(c) > 0)
		return;
	c->client_pace = CLIENT_GOES_ON;
	connection_open_waiting(c);
	if (connection_serves(c))
		connection_tell_pace(c);
}

void connection_tell_pace(struct connection *c)
{
	if (c->client_pace == c->client_pace_told)
		return;
	c->report = REPORT_NOW;
	connection_report(c);
}
