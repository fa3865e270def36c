/* session_lease.c: a transaction: the sender's bytes to the receiver, the receiver's replies to the sender, and its
 * end. */
#include "smtpproxy/sender/session_lease.h"

#include <string.h>

#include "smtp/reply_write.h"
#include "smtpproxy/sender/session_commands.h"
#include "smtpproxy/sender/session_filter.h"
#include "smtpproxy/sender/session_life.h"
#include "smtpproxy/sender/session_offers.h"
#include "smtpproxy/sender/session_store.h"

/* The lease ends, and so does the connection. */
static void lease_drop(struct session *s)
{
	struct onward *o = s->onward;
	s->onward = NULL;
	onward_abort(o);
	destination_take_back(s->destination, o);
}

/* Toward the receiver */

void session_pass(struct session *s, struct smtp_span wire)
{
	pace_count(&s->pace, wire.len);
	onward_write(s->onward, wire.at, wire.len); /* a failure comes as on_lost */
	session_expect_receiver(s);
}

/* The kept MAIL is with the receiver. */
static void lease_begin(struct session *s)
{
	const struct smtp_client_event e = held_command_event(&s->held, s->tx.rules.parse);
	session_record_turn(s);
	smtp_tx_pass(&s->tx, &e);
	pace_count(&s->pace, e.wire.len);
	held_command_free(&s->held);
	session_expect_receiver(s);
}

/* TRIES: no reply, or a 421, which is nothing that this sender did. */
static void lease_try_again(struct session *s)
{
	s->onward = NULL;
	s->tx.rules.one_by_one = 0;
	if (s->drains) { /* no new turn begins at a stop */
		session_end(s, SMTP_OWN_SHUTTING_DOWN);
		return;
	}
	s->home->counters->turns_repeated++;
	session_wait_again(s);
}

void session_expect_receiver(struct session *s)
{
	const struct smtpproxy_outward *c = &s->home->conf->outward;
	uint32_t ms = 0;
	if (s->state == SESSION_DECIDES)
		ms = c->end_ms;
	else if (s->tx.queue_len > 0)
		ms = s->tx.state == SMTP_TX_DATA ? c->data_ms : c->command_ms;
	else if (onward_pending(s->onward) > 0)
		ms = c->block_ms;
	pace_set_turn(&s->pace, ms ? PACE_RECEIVER : PACE_SENDER, worker_now_ms(s->home->worker));
	onward_expect(s->onward, ms);
}

static void on_room(void *ctx)
{
	struct session *s = ctx;
	if (s->state == SESSION_DECIDES || s->state == SESSION_ALONE)
		session_held_go_on(s);
	if (s->state != SESSION_LEASES)
		return;
	session_expect_receiver(s);
	if (onward_pending(s->onward) < SESSION_PENDING_MAX / 2)
		session_go_on(s);
}

/* The end of a transaction */

/* The connection goes to the session whose turn it is. */
static void lease_give_back(struct session *s)
{
	struct onward *o = s->onward;
	s->onward = NULL;
	s->tx.rules.one_by_one = 0;
	onward_release(o);
	destination_take_back(s->destination, o);
}

/* The receiver may have taken it. The sender gets a temporary failure, and so does a session that asks later. */
static void lease_note_doubt(struct session *s, enum smtp_own why)
{
	uint8_t out[SMTP_REPLY_LINE_MAX];
	struct wire_writer w = wire_writer(out, sizeof out);
	const bool is_sure = session_is_unsent(s); /* the receiver cannot have taken it */
	s->home->counters->in_doubt += !is_sure;
	s->home->counters->aborted += is_sure;
	session_record_end(s, is_sure ? RECORD_ABORTED : RECORD_IN_DOUBT);
	smtp_own_write(&w, why);
	session_tx_decide(s, (struct smtp_span){ (const char *)out, (size_t)wire_writer_len(&w) - strlen("\r\n") });
}

void session_abort(struct session *s)
{
	struct onward *o = s->onward;
	session_store_drop(s);
	if (!o) {
		session_filter_drop(s);
		return;
	}
	s->onward = NULL;
	if (s->tx.state == SMTP_TX_DOT)
		lease_note_doubt(s, SMTP_OWN_BACKEND_LOST);
	else if (s->state == SESSION_TRIES || !smtp_tx_is_checkpoint(&s->tx))
		s->home->counters->aborted++;
	if (s->state != SESSION_TRIES && smtp_tx_is_checkpoint(&s->tx)) { /* it was kept between transactions */
		onward_release(o);
	} else {
		onward_abort(o);
	}
	session_filter_drop(s);
	destination_take_back(s->destination, o);
}

static bool lease_is_over(const struct session *s)
{
	return s->tx.state == SMTP_TX_NONE && s->tx.queue_len == 0 && s->tx.server.lines == 0;
}

void session_check_end(struct session *s)
{
	if (s->state == SESSION_DECIDES && s->tx.state != SMTP_TX_DOT)
		session_move(s, SESSION_LEASES);
	if (s->state == SESSION_LEASES && s->tx.state != SMTP_TX_NONE && session_tx_reopen(s) < 0) {
		session_end(s, SMTP_OWN_SHUTTING_DOWN);
		return;
	}
	if (s->state == SESSION_LEASES && s->tx.opaque) { /* it accepts commands outside of a transaction */
		session_end(s, SMTP_OWN_BACKEND_BROKEN);
		return;
	}
	if (s->state != SESSION_LEASES || !lease_is_over(s))
		return;
	session_move(s, SESSION_TALKS);
	session_record_end(s, s->tx.mail_code / 100 == 2 ? RECORD_ABORTED : RECORD_REFUSED);
	session_tx_forget(s);
	session_store_drop(s);
	session_filter_drop(s);
	if (s->home->queue)
		session_expect_sender(s);
	else if (s->home->conf->fairness == CONF_ON)
		lease_give_back(s);
	else
		onward_expect(s->onward, 0);
	if (s->drains)
		session_end(s, SMTP_OWN_SHUTTING_DOWN);
}

bool session_is_decision(const struct session *s, const struct smtp_server_event *e)
{
	return e->line.is_last && smtp_tx_ends(&s->tx, e->turn, e->line.code);
}

/* The reply to the end of a message. */
static void lease_note_decision(struct session *s, const struct smtp_server_event *e)
{
	const unsigned code = e->line.code;
	struct smtpproxy_counters *c = s->home->counters;
	c->transactions++;
	c->accepted += code / 100 == 2;
	c->refused += code / 100 != 2;
	c->decided_alone += s->state == SESSION_ALONE;
	if (code / 100 == 2)
		s->errors = 0; /* as Postfix does */
	if (s->destination) {
		s->destination->transactions++;
		s->destination->accepted += code / 100 == 2;
	}
	session_tx_decide(s, (struct smtp_span){ e->line.wire.at, e->line.wire.len - strlen("\r\n") });
}

/* The sender does not get the reply. Others can use the connection, unless the reply has left the transaction open,
 * which no session can continue. */
static void lease_finish_alone(struct session *s)
{
	if (lease_is_over(s))
		lease_give_back(s);
	else
		session_abort(s);
	session_finish_alone(s);
}

/* Replies */

static void on_line(struct session *s, const struct smtp_server_event *e)
{
	const bool hides = e->turn == SMTP_VERB_EHLO && e->line.code / 100 == 2 && s->state == SESSION_LEASES;
	if (e->line.is_last) {
		session_record_reply(s, e);
		/* Receivers count refusals, too, and a message that they take settles them. Not replies of ours. */
		if (s->onward && !session_is_unsent(s) && e->line.code >= 400)
			s->onward->refusals++;
		else if (s->onward && !session_is_unsent(s) && session_is_decision(s, e))
			s->onward->refusals = 0;
	}
	if (session_is_decision(s, e)) /* before the sender has it */
		lease_note_decision(s, e);
	if (!hides)
		session_write(s, e->line.wire.at, e->line.wire.len);
	else if (e->line.is_last)
		session_say_offers(s);
}

/* It is no refusal of the mail, so the sender gets a temporary one. It may have sent more commands, so the session
 * ends. @before: the lines of the reply that the sender has already. They refuse the mail for good, and without the
 * last line they are no reply. */
static void end_in_clear(struct session *s, unsigned before)
{
	destination_give_up_clear(s->destination, s->onward);
	if (before > 0) {
		session_reset(s);
		return;
	}
	smtp_tx_drop_reply(&s->tx);
	session_lose_receiver(s, SMTP_OWN_BACKEND_NO_TLS);
}

void session_answer(struct session *s, const char *in, size_t len)
{
	struct smtp_server_event e;
	size_t used = 0, taken;
	while (used < len && s->state < SESSION_LEAVES) {
		const unsigned before = s->tx.server.lines;
		smtp_tx_server(&s->tx, in + used, len - used, &taken, &e);
		used += taken;
		/* Only the reply to MAIL is looked at: a receiver that demands TLS takes no mail without it, and hooks
		 * judge MAIL before it is passed on. */
		if (e.kind == SMTP_SERVER_LINE && e.turn == SMTP_VERB_MAIL && s->state == SESSION_LEASES && s->onward &&
			fallback_is_refused(s->onward, &e.line))
			end_in_clear(s, before);
		else if (e.kind == SMTP_SERVER_LINE)
			on_line(s, &e);
		else if (e.kind == SMTP_SERVER_OWN)
			session_say_own(s, e.own);
		else if (e.kind == SMTP_SERVER_BAD)
			session_end(s, SMTP_OWN_BACKEND_BROKEN);
	}
	session_say_due(s);
}

void session_decide(struct session *s, struct smtp_span reply)
{
	if (s->store) {
		session_store_decide(s, reply);
		return;
	}
	onward_forget_name(s->onward); /* EHLO ends the transaction that it has begun */
	session_answer(s, reply.at, reply.len);
	if (s->state == SESSION_ALONE) {
		lease_finish_alone(s);
		return;
	}
	session_check_end(s);
	session_go_on(s);
}

static void on_reply(void *ctx, const char *data, size_t len)
{
	struct session *s = ctx;
	const enum session_state before = (enum session_state)s->state;
	if (before == SESSION_TRIES && len >= 3 && memcmp(data, "421", 3) == 0) {
		lease_drop(s);
		lease_try_again(s);
		return;
	}
	if (before == SESSION_TRIES) {
		session_move(s, SESSION_LEASES);
		lease_begin(s);
	}
	const size_t used = session_held_read(s, data, len);
	data += used;
	len -= used;
	if (used > 0 && len == 0)
		return;
	session_answer(s, data, len);
	if (s->state >= SESSION_LEAVES)
		return;
	if (s->tx.closing && s->tx.server.lines == 0) {
		lease_drop(s); /* it sent 421: it gets no more bytes, and the sender ends, too */
		if (s->state == SESSION_ALONE)
			session_finish_alone(s);
		else
			session_leave(s);
		return;
	}
	if (s->state == SESSION_ALONE) {
		if (s->tx.state != SMTP_TX_DOT && s->tx.server.lines == 0)
			lease_finish_alone(s);
		return;
	}
	if (stream_pending(&s->stream) > SESSION_PENDING_MAX)
		onward_pause(s->onward);
	session_expect_receiver(s);
	session_check_end(s);
	if (s->state != before || !s->tx.waits)
		session_go_on(s);
}

static void end_without_receiver(struct session *s, enum smtp_own why)
{
	if (s->tx.state == SMTP_TX_DOT)
		lease_note_doubt(s, why);
	if (s->state == SESSION_ALONE)
		session_finish_alone(s);
	else if (s->state != SESSION_TALKS) /* else it was kept between transactions */
		session_end(s, why);
}

void session_lose_receiver(struct session *s, enum smtp_own why)
{
	lease_drop(s);
	end_without_receiver(s, why);
}

static void on_lost(void *ctx, enum smtp_own why)
{
	struct session *s = ctx;
	struct onward *o = s->onward;
	destination_note_lost(s->destination, o);
	if (s->state == SESSION_TRIES) {
		lease_try_again(s);
		return;
	}
	s->onward = NULL;
	end_without_receiver(s, why);
}

static const struct onward_user lease_user = { .on_reply = on_reply, .on_room = on_room, .on_lost = on_lost };

/* TRIES: the receiver may have enough of this connection, for what others did with it: it ends it, or says 421. Then
 * the command goes over another one, so the sender's next commands wait. */
enum smtp_own session_lease(struct session *s, struct onward *o)
{
	const struct smtp_client_event e = held_command_event(&s->held, s->tx.rules.parse);
	session_move(s, o->messages > 0 ? SESSION_TRIES : SESSION_LEASES);
	s->onward = o;
	s->tx.rules.one_by_one = session_is_filtered(s) || !(o->greeting.has & SMTP_CAP_BIT(SMTP_CAP_PIPELINING));
	s->pace = (struct pace){ 0 };
	onward_lease(o, &lease_user, s);
	const enum smtp_own lack = session_lack(s, &e.command);
	if (lack) { /* no byte was passed on: the connection goes to the next session */
		session_move(s, SESSION_TALKS);
		lease_give_back(s);
		return lack;
	}
	onward_write(s->onward, s->held.text, s->held.len); /* a failure comes as on_lost */
	if (s->state == SESSION_TRIES) {
		deadline_cancel(&s->deadline);
		onward_expect(s->onward, s->home->conf->outward.command_ms);
		return SMTP_OWN_NONE;
	}
	lease_begin(s);
	session_go_on(s);
	return SMTP_OWN_NONE;
}
