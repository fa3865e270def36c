/* connection_end.c: one function ends a connection, whatever the reason. The others say how the client hears of it. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/loop/dormant.h"
#include "net/report/log.h"
#include "net/socket/discard.h"
#include "proto/client_hello.h"
#include "ragent/connection/connection_client.h"
#include "ragent/connection/connection_end.h"
#include "ragent/connection/connection_life.h"
#include "ragent/connection/connection_owner.h"
#include "ragent/connection/connection_saved.h"
#include "ragent/connection/connection_states.h"
#include "ragent/connection/connection_stream.h"

/* The longest wait for a client that does not read, if its listener has no idle time-out. */
#define LINGER_DRAIN_MS 30000u

static void end_close_descriptor(struct connection *c, enum connection_end_how how)
{
	const struct linger reset = { .l_onoff = 1 };

	if (c->slot.fd >= 0) {
		if (how == END_RESET)
			setsockopt(c->slot.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
		dormant_remove(c->home->dormant, c->slot.fd, c);
		close(c->slot.fd);
	}
	c->slot.fd = -1;
	connection_set_deadline(c, 0); /* the memory is freed later, because the caller may still use it */
}

static void end_close_client(struct connection *c, enum connection_end_how how)
{
	if (!c->busy)
		end_close_descriptor(c, how);
	else if (how == END_RESET)
		stream_abort(&c->busy->client);
	else
		stream_close(&c->busy->client);
}

static void end_close(struct connection *c)
{
	connection_to(c, CONNECTION_CLOSING);
	end_close_client(c, END_AT_ONCE);
}

/* --- LINGERING --- */

static void linger_end(struct connection *c)
{
	if (c->busy && stream_pending(&c->busy->client) > 0)
		stream_reset_on_close(&c->busy->client, true);
	end_close(c);
}

void connection_shut_if_due(struct connection *c)
{
	const bool server_ended = c->now.server_side == SERVER_FIN || c->now.server_side == SERVER_CLOSE_NOTIFY;

	if (c->now.state == CONNECTION_LINGERING || (server_ended && !connection_lacks_bytes(c)))
		stream_shutdown(&c->busy->client);
}

void connection_linger(struct connection *c)
{
	uint32_t idle_ms = connection_limits(c)->idle_timeout_ms;

	if (stream_pending(&c->busy->client))
		connection_set_deadline(c, idle_ms ? idle_ms : LINGER_DRAIN_MS);
	else if (c->now.tail == TAIL_FIN)
		end_close(c);
	else
		connection_set_deadline(c, DISCARD_PAUSE_MS);
}

void connection_discards(struct connection *c, size_t len)
{
	const uint64_t now_ms = connection_now_ms(c);

	enum discard_of who = c->now.position.stage == POSITION_LIVE ? DISCARD_OF_CLIENT : DISCARD_OF_STRANGER;

	if (c->busy->discard_began_ms == 0)
		c->busy->discard_began_ms = now_ms;
	c->now.discarded += (uint32_t)len;
	if (discard_goes_on(who, c->now.discarded, now_ms - c->busy->discard_began_ms))
		connection_linger(c);
	else
		linger_end(c);
}

/* --- the line of it --- */

static const char *end_how_begun(const struct connection *c)
{
	if (!conf_has_preamble(c->front->conf))
		return "tls";
	return c->now.handshake_agent == NO_AGENT ? "clear" : "starttls";
}

/* What the client saw last. */
static const char *end_how_seen(const struct connection *c, enum connection_end_how how)
{
	static const char *const seen[] = {
		[SERVER_OPEN] = "fin",
		[SERVER_FIN] = "fin",
		[SERVER_CLOSE_NOTIFY] = "last-record",
		[SERVER_SAID_LAST] = "last-record",
	};

	return how == END_RESET ? "reset" : seen[c->now.server_side];
}

/* `connections: off` leaves out no refusal. */
static bool end_is_logged(const struct connection *c, enum log_level level)
{
	return log_takes(LOG_ACCESS, level) &&
	       (c->home->shared->conf->log.connections != CONF_LOG_NONE || log_enabled(LOG_DEBUG) ||
		       end_reason_is_refusal(c->now.end_reason));
}

/* The server's name, and the client's JA4. Where no handshake ended, RAgent reads the hello itself. */
static void end_look_at_hello(
	const struct connection *c, char name[static HOST_NAME_MAX_LEN + 1], char ja4[static JA4_TEXT_MAX])
{
	const struct kept *k = c->busy ? &c->busy->kept : NULL;
	struct client_hello h = { 0 };
	struct ja4 made = { 0 };

	if (c->now.agreed) {
		h.server_name = agreed_server_name(c->now.agreed);
		h.server_name_len = (uint16_t)strlen(h.server_name);
		made = c->now.agreed->ja4;
	} else if (k && k->data && k->unit == KEPT_RECORDS &&
		   client_hello_scan(
			   k->data + k->start, k->end - k->start, c->home->hello_scratch, CLIENT_HELLO_MAX, &h) == 0)
		ja4_make(&h, &made);
	host_name_normalize(h.server_name ? h.server_name : "", h.server_name_len, name);
	ja4_text(&made, ja4);
}

/* Each reason has a rate limit of its own, so that many lines of one reason hide no other. */
static void end_log(const struct connection *c, enum connection_end_how how)
{
	const struct agents *agents = c->home->shared->agents;
	const struct agreed *a = c->now.agreed;
	struct log_pace *pace = &c->home->ended_lines[c->now.end_reason], unpaced = { .to = LOG_ACCESS };
	char text[ADDRESS_TEXT_MAX], ja4[JA4_TEXT_MAX], name[HOST_NAME_MAX_LEN + 1];

	/* health checks of a balancer come and go often: log them at debug only */
	enum log_level level =
		c->now.end_reason == END_CLIENT_CLOSED && c->now.handshake_agent == NO_AGENT ? LOG_DEBUG : LOG_INFO;
	enum conf_log_connections which = c->home->shared->conf->log.connections;

	if (!end_is_logged(c, level))
		return;
	end_look_at_hello(c, name, ja4);
	log_event_paced(which == CONF_LOG_ALL ? &unpaced : pace, level, &c->id, "ended",
		"reason=%s end=%s listener=%s began=%s client=%s handshake=%s owner=%s epoch=%u moves=%u version=%04x "
		"suite=%04x resumed=%d alpn=%s ja4=%s cause=%s client_records=%u/%u/%u/%u server_records=%u/%u/%u/%u "
		"client_bytes=%llu server_bytes=%llu ms=%llu server_name=%s",
		end_reason_text(c->now.end_reason), end_how_seen(c, how), c->front->conf->name, end_how_begun(c),
		connection_client_text(c, text), agents_name(agents, c->now.handshake_agent),
		agents_name(agents, c->now.owner), c->now.epoch, c->now.moves, a ? a->protocol_version : 0,
		a ? a->cipher_suite : 0, a ? a->resumed : 0, a ? agreed_alpn(a) : "", ja4, c->home->cause,
		c->now.client_types[0], c->now.client_types[1], c->now.client_types[2], c->now.client_types[3],
		c->now.server_types[0], c->now.server_types[1], c->now.server_types[2], c->now.server_types[3],
		(unsigned long long)c->now.client_bytes, (unsigned long long)c->now.queued,
		(unsigned long long)(connection_now_ms(c) - c->now.accepted_ms), name);
}

/* --- an end --- */

static void end_tell_agents(struct connection *c, enum end_reason reason)
{
	uint8_t byte = (uint8_t)reason;

	if (c->now.current.link)
		link_send(c->now.current.link, c->now.current.stream, FRAME_CLOSE, 0, &byte, 1);
	connection_release_current(c);
	connection_release_frozen(c, FROZEN_HEARS);
	connection_assign(c, NO_AGENT, NO_AGENT);
}

static void end_drop_kept(struct connection *c)
{
	connection_void(c);
	copies_clear(&c->now.copies, &c->home->blocks);
	connection_forget_trail(c);
	if (!c->busy)
		return;
	partials_note(&c->home->partials, &c->busy->partial, 0, PARTIAL_SAME_RECORD, 0);
	kept_clear(&c->busy->kept, &c->home->blocks);
	sealed_blob_drop(&c->busy->note.current, &c->home->blocks);
	sealed_blob_drop(&c->busy->note.former, &c->home->blocks);
	connection_weigh(c);
}

/* A client that goes away before its handshake begins does not count as refused. */
static void end_count_for_listener(const struct connection *c, enum end_reason reason)
{
	struct listener_counters *n = connection_counts(c);

	if (connection_phase(c) == CONNECTION_HANDSHAKING && !c->now.agreed)
		counter_add(&n->handshakes_failed, 1);
	else if (c->now.state <= CONNECTION_WAITING && reason != END_CLIENT_CLOSED && reason != END_CLIENT_RESET)
		counter_add(&n->refused, 1);
}

void connection_end(struct connection *c, enum end_reason reason, enum connection_end_how how)
{
	if (connection_is_over(c))
		return;
	if (how == END_ORDERLY && connection_expand(c) < 0)
		how = END_RESET; /* law 8: without a stream nothing can be sent behind what is queued */
	c->now.end_reason = (uint8_t)reason;
	counter_add(&c->home->counters.ended[reason], 1);
	end_count_for_listener(c, reason);
	connection_to(c, how == END_ORDERLY ? CONNECTION_LINGERING : CONNECTION_CLOSING);
	end_tell_agents(c, reason);
	end_log(c, how);
	end_drop_kept(c);
	if (how == END_ORDERLY) {
		connection_owe_queued(c);
		stream_shutdown(&c->busy->client);
		connection_resume_reading(c);
		connection_linger(c);
	} else {
		end_close_client(c, how);
	}
	connection_report_move(c, &(struct move_result){ .outcome = MOVE_CONFLICT, .reason = "the connection ended" });
}

void connection_end_saying(struct connection *c, enum end_reason reason, const void *words, size_t len)
{
	bool told = len && c->now.position.server_records == 0 && stream_write(&c->busy->client, words, len) == 0;

	if (told) {
		c->now.queued += len;
		counter_add(&c->home->counters.client_queued_bytes, len);
	}
	connection_end(c, reason, told ? END_ORDERLY : END_RESET);
}

/* RFC 8446 6.2: an alert in place of the server. */
void connection_refuse(struct connection *c, enum end_reason reason, enum tls_alert alert)
{
	const uint8_t record[] = { TLS_ALERT, 3, 3, 0, 2, TLS_ALERT_FATAL, (uint8_t)alert };

	connection_end_saying(c, reason, record, sizeof record);
}

void connection_end_at_once(struct connection *c, enum end_reason reason)
{
	if (c->now.state == CONNECTION_LINGERING)
		linger_end(c);
	else
		connection_end(c, reason, END_RESET);
}

void connection_end_if_broken(struct connection *c)
{
	if (!c->busy || c->busy->client.state != STREAM_FAILED)
		return;
	if (c->now.state != CONNECTION_CLOSING)
		connection_end(c, END_CLIENT_RESET, END_RESET);
	/* a LINGERING one may end as soon as its socket reports an error */
	if (c->now.state == CONNECTION_LINGERING)
		end_close(c);
}

/* --- another process has it --- */

void connection_forget_state(struct connection *c)
{
	connection_release_current(c);
	connection_release_frozen(c, FROZEN_HEARS_NOTHING);
	end_drop_kept(c);
}

void connection_let_go(struct connection *c)
{
	if (c->now.state == CONNECTION_CLOSING)
		return;
	connection_forget_state(c);
	connection_assign(c, NO_AGENT, NO_AGENT);
	end_close(c);
	connection_report_move(
		c, &(struct move_result){ .outcome = MOVE_UNAVAILABLE, .reason = "this process is being replaced" });
}
