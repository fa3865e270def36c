/* sink_tx.c: names, decisions and questions of one session. All sessions of one id are in its entry's list. */
#include "bench/mail/sink_tx.h"

#include <sodium.h>
#include <string.h>

#include "bench/mail/sink_commands.h"
#include "net/memory/container_of.h"
#include "smtp/reply_write.h"

#define UNIQUE_ID_MAX (SMTP_TX_ID_MAX / 2)

/* The id */

static bool is_trusted(const struct sink_session *s)
{
	const struct sink_options *o = s->host->options;
	return address_nets_have(o->trusted, o->trusted_count, (const struct sockaddr *)&s->peer);
}

void sink_tx_enter(struct sink_session *s, const struct proxy_header *header)
{
	char id[SMTP_TX_ID_MAX + 1];
	if (!is_trusted(s) || header->unique_id_len == 0 || header->unique_id_len > UNIQUE_ID_MAX)
		return;
	sodium_bin2hex(id, sizeof id, header->unique_id, header->unique_id_len);
	s->tx.entry = tx_ledger_enter(s->host->ledger, id);
	if (s->tx.entry)
		LIST_INSERT_HEAD(&s->tx.entry->sessions, &s->tx.member, in_entry);
	s->host->result->counts[SINK_TX_EVICTED] = tx_ledger_evicted(s->host->ledger);
}

/* Transactions */

enum smtp_own sink_tx_name(struct sink_session *s, const struct smtp_params *params)
{
	struct smtp_tx_name name;
	if (!smtp_params_has(params, SMTP_PARAM_TX))
		return SMTP_OWN_NONE;
	if (!s->tx.entry)
		return SMTP_OWN_UNKNOWN_PARAMETER;
	if (smtp_tx_name_parse(params->value[SMTP_PARAM_TX], &name) < 0)
		return SMTP_OWN_BAD_PARAMETER;
	if (strcmp(name.id, s->tx.entry->id) != 0)
		return SMTP_OWN_NOT_TRUSTED;
	if (tx_entry_begin(s->tx.entry, name.number) < 0)
		return SMTP_OWN_BAD_SEQUENCE;
	s->tx.number = name.number;
	s->tx.state = SINK_TX_OPEN;
	sink_session_count(s, SINK_TX_NAMED);
	return SMTP_OWN_NONE;
}

void sink_tx_forget(struct sink_session *s)
{
	if (s->tx.state == SINK_TX_OPEN)
		s->tx.state = SINK_TX_NONE;
}

void sink_tx_wait(struct sink_session *s)
{
	if (s->tx.state == SINK_TX_OPEN)
		s->tx.state = SINK_TX_UNDECIDED;
}

static void say_fate(struct sink_session *s, enum smtp_fate fate, struct smtp_span reply)
{
	static const enum sink_count counts[] = {
		[SMTP_FATE_DECIDED] = SINK_TX_DECIDED,
		[SMTP_FATE_NEVER] = SINK_TX_NEVER,
		[SMTP_FATE_UNKNOWN] = SINK_TX_UNKNOWN,
	};
	uint8_t out[SMTP_REPLY_LINE_MAX];
	struct wire_writer w = wire_writer(out, sizeof out);
	smtp_fate_write(&w, fate, reply);
	sink_session_count(s, counts[fate]);
	sink_session_say(s, SINK_STEP_OTHER, (const char *)out, (size_t)wire_writer_len(&w), SINK_GOES_ON);
}

static void sink_tx_answer(struct sink_session *s)
{
	struct smtp_span reply = { 0 };
	enum smtp_fate fate = tx_entry_ask(s->tx.entry, s->tx.number, &reply);
	say_fate(s, fate, reply);
}

/* All that wait for this transaction get their answer. The answer may close a session. */
static void tell_askers(struct tx_entry *e, uint64_t number)
{
	struct tx_member *m, *next;
	for (m = LIST_FIRST(&e->sessions); m; m = next) {
		struct sink_session *s = container_of(m, struct sink_session, tx.member);
		next = LIST_NEXT(m, in_entry);
		if (s->tx.state != SINK_TX_ASKING || s->tx.number != number)
			continue;
		s->tx.state = SINK_TX_NONE;
		sink_session_move(s, SINK_IN_COMMANDS);
		sink_tx_answer(s);
		sink_session_go_on(s);
	}
}

void sink_tx_decide(struct sink_session *s, const char *reply, size_t len)
{
	uint64_t number = s->tx.number;
	enum sink_tx_state before = (enum sink_tx_state)s->tx.state;
	if (before == SINK_TX_NONE)
		return;
	s->tx.state = SINK_TX_NONE;
	tx_entry_decide(s->tx.entry, number, (struct smtp_span){ reply, len - strlen("\r\n") });
	tell_askers(s->tx.entry, number);
	if (before == SINK_TX_FENCED)
		sink_session_close(s);
}

void sink_tx_leave(struct sink_session *s)
{
	struct tx_entry *e = s->tx.entry;
	enum sink_tx_state before = (enum sink_tx_state)s->tx.state;
	if (!e)
		return;
	s->tx.state = SINK_TX_NONE;
	LIST_REMOVE(&s->tx.member, in_entry);
	if (before == SINK_TX_UNDECIDED || before == SINK_TX_FENCED)
		tell_askers(e, s->tx.number);
	s->tx.entry = NULL;
	tx_ledger_leave(s->host->ledger, e);
}

/* The question */

/* From now on, transactions that other sessions of the id have not sent completely have no effect. True when one
 * session has sent this transaction completely, and its decision is still to come. */
static bool sink_tx_fence(struct sink_session *asker, uint64_t number)
{
	struct tx_member *m, *next;
	bool waits = false;
	for (m = LIST_FIRST(&asker->tx.entry->sessions); m; m = next) {
		struct sink_session *s = container_of(m, struct sink_session, tx.member);
		next = LIST_NEXT(m, in_entry);
		if (s == asker)
			continue;
		if (s->tx.state != SINK_TX_UNDECIDED && s->tx.state != SINK_TX_FENCED) {
			sink_session_close(s);
			continue;
		}
		s->tx.state = SINK_TX_FENCED;
		waits |= s->tx.number == number;
	}
	return waits;
}

static enum smtp_own question_refusal(
	const struct sink_session *s, const struct smtp_command *c, struct smtp_tx_question *q)
{
	if (!s->tx.entry)
		return SMTP_OWN_NOT_TRUSTED;
	if (smtp_tx_question_parse(c->argument, q) < 0)
		return SMTP_OWN_SYNTAX;
	if (strcmp(q->name.id, s->tx.entry->id) != 0)
		return SMTP_OWN_NOT_TRUSTED;
	return s->greeted && !s->mail ? SMTP_OWN_NONE : SMTP_OWN_BAD_SEQUENCE;
}

void sink_tx_on_question(struct sink_session *s, const struct smtp_command *c)
{
	struct smtp_tx_question q;
	enum smtp_own own = question_refusal(s, c, &q);
	if (own) {
		sink_session_refuse(s, SINK_STEP_OTHER, own);
		return;
	}
	s->tx.number = q.name.number;
	if (sink_tx_fence(s, q.name.number)) {
		s->tx.state = SINK_TX_ASKING;
		sink_session_count(s, SINK_TX_WAITED);
		sink_session_move(s, SINK_IN_QUESTION);
	} else if (strcmp(q.entry, s->tx.entry->key) != 0) {
		say_fate(s, SMTP_FATE_UNKNOWN, (struct smtp_span){ 0 });
	} else {
		sink_tx_answer(s);
	}
}
