/* session.c: the sender's connection: its states, its input, its time limits and its end. */
#include "smtpproxy/sender/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/limits/admission.h"
#include "net/memory/container_of.h"
#include "smtp/reply_write.h"
#include "smtpproxy/sender/session_commands.h"
#include "smtpproxy/sender/session_entry.h"
#include "smtpproxy/sender/session_filter.h"
#include "smtpproxy/sender/session_lease.h"
#include "smtpproxy/sender/session_life.h"
#include "smtpproxy/sender/session_pace.h"
#include "smtpproxy/sender/session_store.h"

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

void session_lose_sender(struct session *s)
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
		taken = s->state == SESSION_HEADER ? session_entry_header(s, data + used, len - used)
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
	if (session_entry_admit(s) < 0) {
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
	session_entry_begin(s);
}
