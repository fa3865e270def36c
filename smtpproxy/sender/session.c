/* session.c: the sender's connection: its destination, its input, its time limits and its end. */

#include "smtpproxy/sender/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/container_of.h"
#include "net/log.h"
#include "smtp/reply_write.h"
#include "smtpproxy/sender/session_commands.h"
#include "smtpproxy/sender/session_filter.h"
#include "smtpproxy/sender/session_lease.h"
#include "smtpproxy/sender/session_life.h"
#include "smtpproxy/sender/session_pace.h"
#include "smtpproxy/sender/session_store.h"

#define HEADER_MS  5000u /* for a PROXY header */
#define LEAVE_MS   5000u /* for the sender's FIN after our last reply */
#define READ_MAX   16384u
#define UNREAD_MAX 8192u /* bytes of a waiting sender; above this, its connection is not read */
#define TO(state)  (1u << SESSION_##state)
#define ANY_END    (TO(LEAVES) | TO(OVER))

static const struct {
	const char *name;
	unsigned may_move_to;
} states[] = {
	[SESSION_HEADER] = { "header", TO(TALKS) | ANY_END },
	[SESSION_TALKS] = { "talks", TO(WAITS) | TO(LEASES) | TO(ASKS) | TO(FILTERS) | ANY_END },
	[SESSION_WAITS] = { "waits", TO(TALKS) | TO(TRIES) | TO(LEASES) | ANY_END },
	[SESSION_TRIES] = { "tries", TO(TALKS) | TO(WAITS) | TO(LEASES) | ANY_END },
	[SESSION_LEASES] = { "sends", TO(TALKS) | TO(DECIDES) | TO(FILTERS) | TO(PROBES) | ANY_END },
	[SESSION_DECIDES] = { "decides", TO(LEASES) | TO(ALONE) | ANY_END },
	[SESSION_ASKS] = { "asks", TO(TALKS) | ANY_END },
	[SESSION_FILTERS] = { "filters", TO(TALKS) | TO(LEASES) | ANY_END },
	[SESSION_PROBES] = { "probes", TO(LEASES) | ANY_END },
	[SESSION_ALONE] = { "alone", TO(OVER) },
	[SESSION_LEAVES] = { "leaves", TO(OVER) },
	[SESSION_OVER] = { "over", 0 },
};

const char *session_state_name(enum session_state state)
{
	return states[state].name;
}

void session_move(struct session *s, enum session_state to)
{
	assert(states[s->state].may_move_to & 1u << to);
	s->state = (uint8_t)to;
}

/* Ending */

static void session_close_now(struct session *s, void (*how)(struct stream *stream))
{
	session_move(s, SESSION_OVER);
	deadline_cancel(&s->deadline);
	how(&s->stream);
}

/* Drop all work that the sender had begun. */
static void session_drop_work(struct session *s)
{
	if (s->state == SESSION_WAITS)
		want_nothing(&s->want);
	probe_forget(&s->probe);
	session_abort(s);
	session_record_end(s, RECORD_ABORTED);
	session_tx_leave(s);
	held_command_free(&s->held);
}

void session_leave(struct session *s)
{
	session_drop_work(s);
	session_move(s, SESSION_LEAVES);
	if (s->ended && stream_pending(&s->stream) == 0) { /* both have said all */
		session_close_now(s, stream_close);
		return;
	}
	stream_shutdown(&s->stream);
	stream_read_start(&s->stream);
	deadline_set(s->home->worker, &s->deadline, LEAVE_MS);
}

void session_reset(struct session *s)
{
	session_drop_work(s);
	session_close_now(s, stream_abort);
}

/* Our reply, with the receiver's words if it was the receiver that refused. */
static void session_write_own(struct session *s, enum smtp_own own)
{
	char line[SMTP_REPLY_LINE_MAX + 2];
	const size_t len = smtp_own_line(own, s->said, line);
	memcpy(line + len, "\r\n", 2);
	session_write(s, line, len + 2);
}

void session_end(struct session *s, enum smtp_own why)
{
	if (s->state >= SESSION_ALONE)
		return;
	if (s->tx.server.lines > 0) {
		session_reset(s);
		return;
	}
	session_write_own(s, why);
	session_leave(s);
}

/* The sender is gone. */
static void session_lose_sender(struct session *s)
{
	const bool is_named = s->named.state == SESSION_TX_UNDECIDED || s->named.state == SESSION_TX_FENCED;
	/* The message is complete, and its fate does not depend on the sender any more: the receiver or the queue has
	 * it, or another session may ask for its decision by name. Else the loss of the sender cancels it (RFC 5321
	 * 4.1.1.10): that sender has no reply, so it will come again. */
	if (s->state == SESSION_DECIDES && (is_named || !session_is_unsent(s))) {
		session_move(s, SESSION_ALONE);
		if (!s->store)
			deadline_cancel(&s->deadline);
		stream_close(&s->stream);
		return;
	}
	if (s->state == SESSION_ALONE || s->state == SESSION_OVER)
		return;
	session_drop_work(s);
	session_close_now(s, stream_close);
}

void session_cut(struct session *s)
{
	session_lose_sender(s);
	if (s->state != SESSION_ALONE || !s->store)
		return;
	session_store_drop(s);
	session_finish_alone(s);
}

void session_cut_open(struct session *s)
{
	if (s->state == SESSION_ALONE && s->store)
		session_cut(s);
	else if (s->state < SESSION_ALONE && (s->state != SESSION_DECIDES || s->store || session_is_unsent(s)))
		session_end(s, SMTP_OWN_SHUTTING_DOWN);
}

void session_cut_decided(struct session *s)
{
	if (s->onward && (s->state == SESSION_DECIDES || s->state == SESSION_ALONE))
		session_lose_receiver(s, SMTP_OWN_SHUTTING_DOWN);
	else
		session_cut(s);
}

void session_drain(struct session *s)
{
	s->drains = 1;
	if (s->state == SESSION_HEADER)
		session_lose_sender(s);
	else if (s->state == SESSION_TALKS || s->state == SESSION_WAITS || s->state == SESSION_ASKS)
		session_end(s, SMTP_OWN_SHUTTING_DOWN);
}

void session_end_drained(struct session *s)
{
	if (s->drains && s->state == SESSION_TALKS)
		session_end(s, SMTP_OWN_SHUTTING_DOWN);
}

static void session_free(struct session *s)
{
	struct sender_home *home = s->home;
	turn_end_cancel(&s->again);
	LIST_REMOVE(s, next);
	home->count--;
	admission_leave(home->admission);
	if (s->counted.len)
		admission_leave_source(home->admission, &s->counted);
	if (s->destination)
		destination_leave(s->destination);
	session_store_drop(s);
	session_filter_drop(s);
	held_command_free(&s->held);
	free(s);
	home->on_gone(home);
}

static void on_closed(struct stream *stream)
{
	struct session *s = (struct session *)stream;
	if (s->state == SESSION_OVER)
		session_free(s);
}

/* ALONE, and decided. */
void session_finish_alone(struct session *s)
{
	session_record_end(s, RECORD_ABORTED);
	session_filter_drop(s);
	session_tx_leave(s);
	session_move(s, SESSION_OVER);
	deadline_cancel(&s->deadline);
	if (s->stream.state == STREAM_CLOSED)
		session_free(s);
}

/* Output */

void session_write(struct session *s, const char *text, size_t len)
{
	if (s->state < SESSION_ALONE)
		stream_write(&s->stream, text, len); /* a failure is reported by on_end */
}

static void on_written(struct stream *stream, size_t len)
{
	struct session *s = (struct session *)stream;
	if (s->state == SESSION_LEAVES && s->ended && stream_pending(stream) == 0)
		session_close_now(s, stream_close);
	if (s->state >= SESSION_LEAVES || stream_pending(stream) >= SESSION_PENDING_MAX)
		return;
	if (s->onward && s->onward->state == ONWARD_LEASED)
		onward_resume(s->onward);
	if (s->state < SESSION_LEAVES && stream_kept(stream) > 0)
		session_go_on(s);
}

void session_say_own(struct session *s, enum smtp_own own)
{
	const unsigned code = smtp_own_reply(own)->code;
	if (code == 421) {
		session_end(s, own);
		return;
	}
	session_write_own(s, own);
	if (code == 221 && s->state < SESSION_ALONE)
		session_leave(s);
}

void session_say_due(struct session *s)
{
	struct smtp_server_event e;
	size_t taken;
	while (s->state < SESSION_LEAVES) {
		smtp_tx_server(&s->tx, NULL, 0, &taken, &e);
		if (e.kind != SMTP_SERVER_OWN)
			return;
		session_say_own(s, e.own);
	}
}

/* Time limits */

static void on_deadline(struct deadline *d)
{
	struct session *s = container_of(d, struct session, deadline);
	switch ((enum session_state)s->state) {
	case SESSION_HEADER: session_lose_sender(s); break;
	case SESSION_WAITS:
		want_nothing(&s->want);
		s->home->counters->turns_expired++;
		s->want.ops->on_failed(&s->want, SMTP_OWN_CONGESTED);
		break;
	case SESSION_LEAVES: session_close_now(s, stream_close); break;
	case SESSION_LEASES: session_look_at_pace(s); break;
	case SESSION_DECIDES:
	case SESSION_ALONE: session_store_expire(s); break;
	default: session_end(s, SMTP_OWN_TIMED_OUT); break;
	}
}

void session_expect_sender(struct session *s)
{
	s->heard_ms = worker_now_ms(s->home->worker);
	if (s->state == SESSION_TALKS) /* nobody waits for it */
		deadline_set(s->home->worker, &s->deadline, s->home->conf->limits.sender_ms);
	else if (s->state == SESSION_LEASES)
		session_expect_pace(s);
	else if (s->state == SESSION_DECIDES && s->store && !session_is_judged(s))
		deadline_set(s->home->worker, &s->deadline, s->home->conf->queue.store_ms);
	else if (s->state >= SESSION_DECIDES && s->state <= SESSION_PROBES) /* others have to act */
		deadline_cancel(&s->deadline);
}

/* Where it wants to go */

/* NULL: senders choose the destination. */
static const struct sockaddr *next_hop(const struct session *s)
{
	const struct sockaddr *to = (const struct sockaddr *)&s->listener->next_hop;
	return to->sa_family == AF_UNSPEC ? NULL : to;
}

/* It gets no banner. It has nothing more to say then, and while we waited for its FIN it would have a place. */
static void session_turn_away(struct session *s, enum smtp_own why)
{
	session_move(s, SESSION_TALKS);
	s->ended = 1;
	session_end(s, why);
}

static void refuse_destination(struct session *s, const char *cause)
{
	s->home->counters->not_captured++;
	log_event(LOG_INFO, NULL, "connection without a destination", "listener=%s cause=%s",
		s->listener->capture == CAPTURE_NONE ? "proxy" : "captured", cause);
	session_turn_away(s, SMTP_OWN_MISCONFIGURED);
}

static void session_refuse(struct session *s, enum smtp_own why)
{
	s->home->counters->sessions_refused++;
	session_turn_away(s, why);
}

/* @to is of no interest if all mail goes to the queue. */
static void session_enter(struct session *s, const struct sockaddr *to)
{
	const uint32_t most = s->home->conf->limits.sessions, now = admission_total(s->home->admission);
	if (s->home->queue) {
		session_move(s, SESSION_TALKS);
		session_greet(s);
		return;
	}
	const enum destination_verdict verdict =
		destination_rules_judge(s->home->rules, to, worker_now_ms(s->home->worker));
	s->home->counters->loops += verdict == DESTINATION_OURSELVES;
	if (verdict != DESTINATION_ALLOWED) {
		refuse_destination(s, destination_verdict_text(verdict));
		return;
	}
	const struct destination_goal goal = { .to = to };
	s->destination = outward_find(s->home->outward, &goal, &s->source);
	if (!s->destination) {
		session_turn_away(s, SMTP_OWN_OVERLOADED);
		return;
	}
	destination_enter(s->destination);
	if (!next_hop(s) && destination_has_its_part(s->destination, now < most ? most - now : 0)) {
		session_refuse(s, SMTP_OWN_DESTINATION_FULL);
		return;
	}
	session_move(s, SESSION_TALKS);
	session_greet(s);
}

/* @from is who sends the mail. */
static void set_source(struct session *s, const struct sockaddr *from)
{
	s->sends_as = (uint8_t)recipient_rules_sender(s->listener, from);
	s->source.len = (uint8_t)address_bytes(from, s->source.bytes);
	s->source_port = address_port(from);
}

static size_t session_take_header(struct session *s, const uint8_t *in, size_t len)
{
	struct proxy_header h;
	struct sockaddr_storage from, to;
	size_t taken = 0;
	int r = proxy_header_parse(in, len, &h, &taken);
	if (r == PROXY_INCOMPLETE)
		return 0;
	if (r < 0) {
		s->home->counters->not_captured++;
		session_lose_sender(s);
		return len;
	}
	r = capture_of_header(&h, &from, &to);
	if (r == 0)
		set_source(s, (const struct sockaddr *)&from);
	session_tx_enter(s, &h);
	session_record_header(s, &h);
	/* The sender that the header names; the peer is the cluster. */
	if (r == 0 && admission_enter_source(s->home->admission, &s->source) < 0) {
		session_refuse(s, SMTP_OWN_TOO_MANY_CONNECTIONS);
		return taken;
	}
	if (r == 0)
		s->counted = s->source;
	if (s->home->queue || next_hop(s) || r == 0)
		session_enter(s, next_hop(s) ? next_hop(s) : (const struct sockaddr *)&to);
	else
		refuse_destination(s, "the PROXY header names none");
	return taken;
}

/* Input */

static bool session_reads(const struct session *s)
{
	if (s->state == SESSION_HEADER)
		return true;
	if (stream_pending(&s->stream) >= SESSION_PENDING_MAX) /* it does not read its replies */
		return false;
	return s->state == SESSION_TALKS ||
	       (s->state == SESSION_LEASES && (s->home->queue || onward_pending(s->onward) < SESSION_PENDING_MAX));
}

/* Bytes that have to wait stay with the stream. While there are few, it is read on, so that the sender's end is seen.
 */
static size_t on_data(struct stream *stream, uint8_t *data, size_t len)
{
	struct session *s = (struct session *)stream;
	size_t used = 0, taken = 1;
	if (s->state == SESSION_LEAVES) /* only its FIN is waited for */
		return len;
	for (; used < len && taken > 0 && session_reads(s); used += taken)
		taken = s->state == SESSION_HEADER ? session_take_header(s, data + used, len - used)
						   : session_take(s, (const char *)data + used, len - used);
	if (s->state == SESSION_LEAVES)
		return len;
	if (used > 0 && s->state < SESSION_LEAVES)
		session_expect_sender(s);
	if (s->state < SESSION_LEAVES && len - used > UNREAD_MAX)
		stream_read_stop(stream);
	return used;
}

/* No more input comes, and all of it was used: an incomplete command stays incomplete. */
static void leave_if_starved(struct session *s)
{
	if (!s->ended || s->state >= SESSION_ALONE || s->state == SESSION_DECIDES || stream_kept(&s->stream) > 0)
		return;
	if (s->state == SESSION_HEADER)
		session_lose_sender(s);
	else
		session_leave(s);
}

static void on_again(struct turn_end *t)
{
	struct session *s = container_of(t, struct session, again);
	if (s->state < SESSION_ALONE)
		stream_read_again(&s->stream);
	leave_if_starved(s);
}

void session_go_on(struct session *s)
{
	if (s->state >= SESSION_ALONE)
		return;
	session_expect_sender(s);
	if (s->ended) {
		worker_at_turn_end(s->home->worker, &s->again);
		return;
	}
	stream_read_stop(&s->stream); /* so that the loop delivers kept bytes, also if it was reading */
	stream_read_start(&s->stream);
}

static void on_end(struct stream *stream, enum stream_end end, int uv_error)
{
	struct session *s = (struct session *)stream;
	if (s->state == SESSION_LEAVES) {
		session_close_now(s, stream_close);
	} else if (end == STREAM_EOF && s->state < SESSION_ALONE) {
		s->ended = 1;
		leave_if_starved(s);
	} else {
		session_lose_sender(s);
	}
}

static const struct stream_ops stream_ops = {
	.on_data = on_data,
	.on_end = on_end,
	.on_written = on_written,
	.on_closed = on_closed,
};

/* The start */

/* 0: it was admitted. */
static int session_admit(struct session *s)
{
	struct client_address source = { .len = 0 };
	source.len = (uint8_t)address_bytes((const struct sockaddr *)&s->peer, source.bytes);
	if (admission_enter(s->home->admission) < 0)
		return -1;
	if (s->listener->capture == CAPTURE_NONE) /* all come from the cluster, whose header is to come */
		return 0;
	if (admission_enter_source(s->home->admission, &source) < 0) {
		admission_leave(s->home->admission);
		return -1;
	}
	s->counted = source;
	return 0;
}

static void session_begin(struct session *s)
{
	struct sockaddr_storage to;
	const struct sockaddr *local = (const struct sockaddr *)&s->listener->address;
	set_source(s, (const struct sockaddr *)&s->peer);
	if (s->listener->capture == CAPTURE_NONE) {
		s->sends_as = RECIPIENT_OF_STRANGER; /* the peer is the cluster, also if its header names nobody */
		deadline_set(s->home->worker, &s->deadline, HEADER_MS);
		if (!address_nets_have(
			    s->listener->trusted, s->listener->trusted_count, (const struct sockaddr *)&s->peer)) {
			s->home->counters->not_captured++;
			session_lose_sender(s);
		}
	} else if (capture_destination(stream_fd(&s->stream), s->listener->capture, local, &to) < 0) {
		refuse_destination(s, "the sender connected to smtpproxy itself");
	} else {
		session_enter(s, next_hop(s) ? next_hop(s) : (const struct sockaddr *)&to);
	}
}

void session_open(struct sender_home *home, const struct smtpproxy_listener *listener, int fd,
	const struct sockaddr_storage *peer)
{
	static const char words[] = "421 4.7.0 Too many connections\r\n";
	struct session *s = calloc(1, sizeof *s);
	if (!s) {
		close(fd);
		return;
	}
	s->home = home;
	s->listener = listener;
	s->peer = *peer;
	s->deadline.fn = on_deadline;
	s->again.fn = on_again;
	s->want.ops = &session_want_ops;
	s->said = "";
	if (session_admit(s) < 0) {
		home->counters->sessions_refused++;
		if (write(fd, words, sizeof words - 1) < 0) /* nobody can be told about an error */
			(void)0;
		close(fd);
		free(s);
		return;
	}
	home->counters->sessions++;
	home->count++;
	s->number = ++home->numbered;
	LIST_INSERT_HEAD(&home->sessions, s, next);
	stream_open_accepted(&s->stream, home->worker, &stream_ops, fd);
	stream_set_read_max(&s->stream, READ_MAX);
	stream_read_start(&s->stream);
	session_begin(s);
}
