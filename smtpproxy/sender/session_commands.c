/* session_commands.c: the handlers of a sender's commands. One table has, for each verb, its handler outside and
 * inside of a transaction. Commands that have to wait are kept unchanged. */
#include "smtpproxy/sender/session_commands.h"

#include <stdio.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "smtp/params.h"
#include "smtp/reply_write.h"
#include "smtpproxy/sender/session_filter.h"
#include "smtpproxy/sender/session_lease.h"
#include "smtpproxy/sender/session_life.h"
#include "smtpproxy/sender/session_offers.h"
#include "smtpproxy/sender/session_probe.h"
#include "smtpproxy/sender/session_store.h"

#define SESSION_EMPTY_MAX 100u /* transactions without content, one after the other: then the session ends */

bool session_errs(struct session *s)
{
	if (++s->errors <= s->home->conf->limits.errors)
		return false;
	session_end(s, SMTP_OWN_TOO_MANY_ERRORS);
	return true;
}

void session_answer_own(struct session *s, const struct smtp_client_event *e, enum smtp_own own)
{
	smtp_tx_answer(&s->tx, e, own);
	if (smtp_own_reply(own)->code < 500 || !session_errs(s))
		session_say_due(s);
}

/* EHLO and HELO */

void session_greet(struct session *s)
{
	const struct smtp_tx_rules rules = { .parse = SMTP_PARSE_UTF8 | SMTP_PARSE_LENIENT,
		.data_refuse = SMTP_DATA_SMUGGLING,
		.client_max = sizeof s->client_line,
		.reply_max = sizeof s->reply_line };
	const struct smtp_tx_memory memory = { .client_line = s->client_line, .reply_line = s->reply_line };
	char out[SMTP_REPLY_LINE_MAX];
	const int len = snprintf(out, sizeof out, "220 %s ESMTP\r\n", s->home->conf->name);
	smtp_tx_begin(&s->tx, &rules, &memory, SMTP_TX_BEFORE_BANNER);
	session_answer(s, out, (size_t)len);
	session_expect_sender(s);
}

/* Waiting */

/* No transaction begins: neither its record nor its name (XCSSLTX) is that of the next one. */
static void mail_refuse(struct session *s, const struct smtp_client_event *e, enum smtp_own why)
{
	if (s->state == SESSION_TALKS) {
		session_record_not_served(s, why);
		session_tx_forget(s);
	}
	session_answer_own(s, e, why);
}

static void turn_begin(struct session *s, uint64_t for_ms)
{
	session_move(s, SESSION_WAITS);
	deadline_set(s->home->worker, &s->deadline, for_ms);
	if (want_turn(&s->want, &s->destination->wants) < 0)
		s->want.ops->on_failed(&s->want, SMTP_OWN_OVERLOADED);
}

/* MAIL waits for a connection in its turn, the first EHLO for the receiver's extensions. Either ends by
 * session_want_ops: from the step of the destination (outward/destination.c), or at the deadline (session.c). */
static void turn_wait(struct session *s, const struct smtp_client_event *e)
{
	const uint32_t turn_ms = s->home->conf->limits.turn_ms;
	s->want.sender = s->source;
	if (s->home->conf->fairness == CONF_OFF)
		s->want.sender = (struct client_address){ .len = 0 };
	s->want.weight = 1;
	s->want.name = s->tx.name;
	if (held_command_keep(&s->held, e) < 0) {
		mail_refuse(s, e, SMTP_OWN_OVERLOADED);
		return;
	}
	s->waits_till_ms = worker_now_ms(s->home->worker) + turn_ms;
	if (e->command.verb == SMTP_VERB_MAIL) {
		turn_begin(s, turn_ms);
		return;
	}
	session_move(s, SESSION_WAITS);
	deadline_set(s->home->worker, &s->deadline, turn_ms);
	want_offers(&s->want, &s->destination->wants);
}

void session_wait_again(struct session *s)
{
	const uint64_t now_ms = worker_now_ms(s->home->worker);
	if (now_ms < s->waits_till_ms) {
		turn_begin(s, s->waits_till_ms - now_ms);
		return;
	}
	session_move(s, SESSION_WAITS);
	s->home->counters->turns_expired++;
	s->want.ops->on_failed(&s->want, SMTP_OWN_CONGESTED);
}

static void on_offers(struct want *w)
{
	struct session *s = container_of(w, struct session, want);
	const struct smtp_client_event e = held_command_event(&s->held, s->tx.rules.parse);
	session_move(s, SESSION_TALKS);
	smtp_tx_pass(&s->tx, &e);
	held_command_free(&s->held);
	session_answer_offers(s);
	session_go_on(s);
}

/* The kept command is answered without being done. */
static void turn_answer(struct session *s, enum smtp_own why)
{
	const struct smtp_client_event e = held_command_event(&s->held, s->tx.rules.parse);
	smtp_tx_answer(&s->tx, &e, why);
	if (e.command.verb != SMTP_VERB_MAIL) /* the receiver's extensions are not known */
		session_record_greeting(s);
	session_record_not_served(s, why);
	session_filter_drop(s);
	session_tx_forget(s);
	held_command_free(&s->held);
	session_say_due(s);
	session_end_drained(s);
	session_go_on(s);
}

/* A banner of 5xx is one server's. A sender that meets it itself tries the next server of the domain, and keeps the
 * mail if there is none (Postfix: smtp_skip_5xx_greeting); a 554 to EHLO or MAIL would be the end of the mail. */
static enum smtp_own told_instead(enum smtp_own why)
{
	return why == SMTP_OWN_RECEIVER_REFUSES ? SMTP_OWN_RECEIVER_CLOSED : why;
}

static void on_failed(struct want *w, enum smtp_own why)
{
	struct session *s = container_of(w, struct session, want);
	session_move(s, SESSION_TALKS);
	s->said = want_said(w, why);
	turn_answer(s, told_instead(why));
	s->said = "";
}

static void on_turn(struct want *w, struct onward *o)
{
	struct session *s = container_of(w, struct session, want);
	const enum smtp_own lack = session_lease(s, o);
	if (lack)
		turn_answer(s, lack);
}

const struct want_ops session_want_ops = { .on_offers = on_offers, .on_turn = on_turn, .on_failed = on_failed };

/* Commands */

/* RFC 5321 4.1.4: it ends an open transaction, as RSET does. */
static void hello_ends_transaction(struct session *s)
{
	if (s->state == SESSION_LEASES)
		session_check_end(s);
}

static void on_hello(struct session *s, const struct smtp_client_event *e)
{
	char out[SMTP_REPLY_LINE_MAX];
	const int len = snprintf(out, sizeof out, "250 %s\r\n", s->home->conf->name);
	if (s->onward && s->state == SESSION_LEASES) {
		onward_forget_name(s->onward);
		smtp_tx_pass(&s->tx, e);
		session_pass(s, e->wire);
	} else if (e->command.verb == SMTP_VERB_HELO) {
		smtp_tx_pass(&s->tx, e);
		s->told = 0;
		session_answer(s, out, (size_t)len);
		hello_ends_transaction(s);
	} else if (s->home->queue || destination_offers(s->destination)) {
		smtp_tx_pass(&s->tx, e);
		session_answer_offers(s);
		hello_ends_transaction(s);
	} else {
		smtp_span_copy(e->command.argument, s->tx.name, sizeof s->tx.name);
		turn_wait(s, e);
	}
}

/* Reads the parameter that is for smtpproxy. The receiver judges all others, and may know more of them. @name: the
 * value of XCSSLTX. */
static enum smtp_own read_params(struct smtp_span rest, struct smtp_span *name)
{
	struct smtp_param param;
	for (int r = 0; r != SMTP_PARAMS_END;) {
		r = smtp_param_next(&rest, &param);
		if (r == SMTP_PARAMS_END)
			break;
		if (smtp_span_is(param.keyword, "REQUIRETLS"))
			return SMTP_OWN_REQUIRETLS_IMPOSSIBLE;
		if (smtp_cap_is_foreign(param.keyword)) /* PRDR: its replies cannot be followed */
			return SMTP_OWN_UNKNOWN_PARAMETER;
		if (!smtp_span_is(param.keyword, "XCSSLTX"))
			continue;
		if (name->at || r < 0 || !param.value.at)
			return SMTP_OWN_BAD_PARAMETER;
		*name = param.value;
	}
	return SMTP_OWN_NONE;
}

static enum smtp_own read_mail(struct session *s, const struct smtp_command *c, struct smtp_span *name)
{
	struct smtp_params params = { 0 };
	if (!s->tx.greeting)
		return SMTP_OWN_EHLO_FIRST;
	if (smtp_params_read(SMTP_VERB_MAIL, c->params, &params) == 0 && params.size > session_size_max(s))
		return SMTP_OWN_TOO_BIG;
	const enum smtp_own own = read_params(c->params, name);
	return own || !name->at ? own : session_tx_name(s, *name);
}

/* Hooks may agree to MAIL during a stop: session_drain() lets FILTERS wait for their verdict. */
static void mail_begin(struct session *s, const struct smtp_client_event *e)
{
	if (s->drains) {
		session_end(s, SMTP_OWN_SHUTTING_DOWN);
		return;
	}
	if (s->home->queue) {
		session_store_mail(s, e);
		if (s->store)
			return;
		session_tx_forget(s); /* refused */
		session_filter_drop(s);
		return;
	}
	s->hops = (struct hops){ 0 };
	if (s->state == SESSION_TALKS)
		session_record_begin(s, e->command.path.mailbox);
	if (s->state == SESSION_TALKS && !s->onward) {
		turn_wait(s, e);
		return;
	}
	const enum smtp_own lack = session_lack(s, &e->command);
	if (lack) {
		mail_refuse(s, e, lack);
		return;
	}
	if (s->state == SESSION_TALKS) { /* unfair: it has kept its connection */
		s->pace = (struct pace){ 0 };
		session_move(s, SESSION_LEASES);
		session_record_turn(s);
	}
	smtp_tx_pass(&s->tx, e);
	session_pass(s, e->wire);
}

static void on_mail(struct session *s, const struct smtp_client_event *e)
{
	struct smtp_span name = { 0 };
	uint8_t without[SESSION_LINE_MAX];
	struct wire_writer w = wire_writer(without, sizeof without);
	struct smtp_client_event unnamed = *e;
	enum smtp_own own = s->drains ? SMTP_OWN_SHUTTING_DOWN : read_mail(s, &e->command, &name);
	if (s->record.empty >= SESSION_EMPTY_MAX) {
		session_end(s, SMTP_OWN_TOO_MANY_COMMANDS);
		return;
	}
	if (own) {
		session_answer_own(s, e, own);
		return;
	}
	if (name.at) {
		smtp_tx_name_remove(&w, e->wire, name);
		unnamed.wire = (struct smtp_span){ (const char *)without, (size_t)wire_writer_len(&w) };
	}
	if (session_is_filtered(s) && s->state != SESSION_TALKS) /* one transaction at a time */
		session_answer_own(s, e, SMTP_OWN_BAD_SEQUENCE);
	else if (!session_filter(s, &unnamed))
		mail_begin(s, &unnamed);
}

/* All of the content was passed on: with its last byte, or with an empty last chunk. */
static void decide_if_complete(struct session *s)
{
	if (s->state != SESSION_LEASES || s->tx.state != SMTP_TX_DOT)
		return;
	session_move(s, SESSION_DECIDES);
	session_tx_wait(s);
	session_expect_receiver(s);
}

/* A command of a transaction goes to the receiver. */
static void command_pass(struct session *s, const struct smtp_client_event *e)
{
	if (s->home->queue) {
		session_store_command(s, e);
		return;
	}
	if (e->command.verb == SMTP_VERB_RCPT)
		session_record_recipient(s, &e->command);
	if (e->command.verb == SMTP_VERB_DATA && session_held_begin(s, e))
		return;
	smtp_tx_pass(&s->tx, e);
	session_pass(s, e->wire);
	decide_if_complete(s);
}

/* RCPT, DATA, BDAT, RSET, in a transaction. */
void session_transact(struct session *s, const struct smtp_client_event *e)
{
	/* If every MAIL was refused, a receiver that takes content would have no sender for it. */
	if (s->state != SESSION_LEASES || (s->tx.state == SMTP_TX_NONE && e->command.verb != SMTP_VERB_RSET)) {
		session_answer_own(s, e, e->command.verb == SMTP_VERB_RSET ? SMTP_OWN_OK : SMTP_OWN_BAD_SEQUENCE);
		return;
	}
	const enum smtp_own own = session_lack(s, &e->command);
	if (own)
		session_answer_own(s, e, own);
	else if (!session_judge_recipient(s, e) && !session_filter(s, e))
		command_pass(s, e);
}

void session_resume(struct session *s, const struct smtp_client_event *e)
{
	if (e->command.verb == SMTP_VERB_MAIL)
		mail_begin(s, e);
	else
		command_pass(s, e);
}

/* The replies to the other commands. */
static const uint8_t own_replies[SMTP_VERB_COUNT] = {
	[SMTP_VERB_UNKNOWN] = SMTP_OWN_UNKNOWN_COMMAND,
	[SMTP_VERB_VRFY] = SMTP_OWN_NOT_VERIFIED,
	[SMTP_VERB_EXPN] = SMTP_OWN_NOT_IMPLEMENTED,
	[SMTP_VERB_HELP] = SMTP_OWN_HELP,
	[SMTP_VERB_NOOP] = SMTP_OWN_OK,
	[SMTP_VERB_QUIT] = SMTP_OWN_BYE,
	[SMTP_VERB_STARTTLS] = SMTP_OWN_NOT_IMPLEMENTED,
	[SMTP_VERB_AUTH] = SMTP_OWN_NOT_IMPLEMENTED,
	[SMTP_VERB_ETRN] = SMTP_OWN_NOT_IMPLEMENTED,
	[SMTP_VERB_XCLIENT] = SMTP_OWN_NOT_TRUSTED,
	[SMTP_VERB_XFORWARD] = SMTP_OWN_NOT_TRUSTED,
	[SMTP_VERB_CONNECT] = SMTP_OWN_FOREIGN_PROTOCOL,
	[SMTP_VERB_GET] = SMTP_OWN_FOREIGN_PROTOCOL,
	[SMTP_VERB_POST] = SMTP_OWN_FOREIGN_PROTOCOL,
};

static void (*const ons[SMTP_VERB_COUNT])(struct session *s, const struct smtp_client_event *e) = {
	[SMTP_VERB_EHLO] = on_hello,
	[SMTP_VERB_HELO] = on_hello,
	[SMTP_VERB_MAIL] = on_mail,
	[SMTP_VERB_RCPT] = session_transact,
	[SMTP_VERB_DATA] = session_transact,
	[SMTP_VERB_BDAT] = session_transact,
	[SMTP_VERB_RSET] = session_transact,
	[SMTP_VERB_XCSSLTX] = session_tx_question,
};

static void on_command(struct session *s, const struct smtp_client_event *e)
{
	if (e->refusal)
		session_answer_own(s, e, e->refusal);
	else if (ons[e->command.verb])
		ons[e->command.verb](s, e);
	else
		session_answer_own(s, e, (enum smtp_own)own_replies[e->command.verb]);
}

/* True when the message goes in a circle: then the rest of it is not passed on. */
static bool message_loops(struct session *s, struct smtp_span content)
{
	if (hops_follow(&s->hops, content.at, content.len) <= s->home->conf->limits.hops)
		return false;
	s->home->counters->loops++;
	session_end(s, SMTP_OWN_LOOP);
	return true;
}

static void on_content(struct session *s, const struct smtp_client_event *e)
{
	if (!e->discard && message_loops(s, e->wire))
		return;
	if (session_held_take(s, e))
		return;
	if (s->home->queue) {
		if (s->store)
			session_store_content(s, e);
		return;
	}
	if (!e->discard && e->wire.len > 0) {
		s->home->counters->bytes += e->wire.len;
		session_pass(s, e->wire);
	}
	decide_if_complete(s);
}

size_t session_take(struct session *s, const char *in, size_t len)
{
	struct smtp_client_event e;
	size_t taken;
	smtp_tx_client(&s->tx, in, len, &taken, &e);
	switch (e.kind) {
	case SMTP_CLIENT_MORE:
	case SMTP_CLIENT_WAIT: break;
	case SMTP_CLIENT_COMMAND: on_command(s, &e); break;
	case SMTP_CLIENT_AUTH_LINE: session_end(s, SMTP_OWN_BAD_SEQUENCE); break;
	case SMTP_CLIENT_CONTENT:
	case SMTP_CLIENT_CONTENT_END: on_content(s, &e); break;
	case SMTP_CLIENT_FLAW:
		s->home->counters->smuggling++;
		session_end(s, SMTP_OWN_SMUGGLING);
		break;
	}
	return taken;
}
