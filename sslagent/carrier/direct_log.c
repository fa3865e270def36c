/* direct_log.c: the access log of direct listeners: a line for each client, with the fields that RAgent's lines have.
 */
#include "net/address.h"
#include "net/log_pace.h"
#include "sslagent/carrier/direct_inside.h"
#include "sslagent/connection/connection.h"

void direct_log_end(const struct direct *d, enum end_reason reason, const char *end)
{
	const enum conf_log_connections which = d->listener->home->connections->conf->log.connections;
	struct log_pace unpaced = { .to = LOG_ACCESS }, *paced = &d->listener->home->ended_lines[reason];
	struct connection_account a = { .cause = "" };
	char client[ADDRESS_TEXT_MAX], ja4[JA4_TEXT_MAX];

	if (!log_takes(LOG_ACCESS, LOG_INFO) || (which == CONF_LOG_NONE && !end_reason_is_refusal(reason)))
		return;
	if (d->connection)
		connection_account(d->connection, &a);
	log_event_paced(which == CONF_LOG_ALL ? &unpaced : paced, LOG_INFO, a.id, "ended",
		"reason=%s end=%s listener=%s client=%s version=%04x suite=%04x alpn=%s ja4=%s cause=%s "
		"client_bytes=%llu server_bytes=%llu ms=%llu server_name=%s",
		end_reason_text(reason), end, d->listener->conf->listener,
		address_format((const struct sockaddr *)&d->client, client), a.facts.protocol_version,
		a.facts.cipher_suite, a.facts.alpn, ja4_text(&a.facts.ja4, ja4), a.cause,
		(unsigned long long)a.client_bytes, (unsigned long long)a.server_bytes,
		(unsigned long long)(worker_now_ms(d->stream.worker) - d->accepted_ms), a.facts.server_name);
}

void direct_tell_left_out(struct carrier_home *home)
{
	for (unsigned reason = 0; reason < END_REASON_COUNT; reason++)
		log_pace_tell(&home->ended_lines[reason], LOG_INFO, "ended");
}
