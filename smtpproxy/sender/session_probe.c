/* session_probe.c: deliver: queue: which recipients are taken from whom. Of a stranger's, the receiver is asked. */
#include "smtpproxy/sender/session_probe.h"

#include "net/memory/container_of.h"
#include "smtp/reply_write.h"
#include "smtpproxy/policy/destination_rules.h"
#include "smtpproxy/sender/session_commands.h"
#include "smtpproxy/sender/session_lease.h"
#include "smtpproxy/sender/session_life.h"
#include "smtpproxy/sender/session_store.h"

/* As if its receiver had refused it: the record has it. */
static void probe_refuse(struct session *s, const struct smtp_client_event *e, struct smtp_span reply)
{
	session_record_recipient(s, &e->command);
	smtp_tx_pass(&s->tx, e);
	if (session_errs(s))
		return;
	session_answer(s, reply.at, reply.len);
	if (s->state == SESSION_LEASES)
		session_check_end(s);
}

static void on_known(struct probe_wait *w)
{
	struct session *s = container_of(w, struct session, probe);
	const struct smtp_client_event e = held_command_event(&s->held, s->tx.rules.parse);
	struct held_command held = s->held;

	s->held = (struct held_command){ 0 };
	session_move(s, SESSION_LEASES);
	session_transact(s, &e);
	held_command_free(&held);
	session_go_on(s);
}

static bool probe_begin(struct session *s, const struct smtp_client_event *e)
{
	struct store_recipient to;
	const char *reply = NULL;
	enum probe_answer answer;

	if (session_store_recipient(s, &e->command, &to)) /* it is refused */
		return false;
	s->probe.on_known = on_known;
	answer = probes_ask(s->home->probes, to.line, to.mailbox, &s->probe, &reply);
	if (answer == PROBE_TAKES)
		return false;
	if (answer == PROBE_REFUSES) {
		s->home->counters->recipients_unknown++;
		probe_refuse(s, e, smtp_span_of(reply));
	} else if (answer == PROBE_PUTS_OFF || held_command_keep(&s->held, e) < 0) {
		probe_forget(&s->probe);
		session_answer_own(s, e, SMTP_OWN_CONGESTED);
	} else { /* the receiver is asked, and the command waits for the answer */
		session_move(s, SESSION_PROBES);
		pace_set_turn(&s->pace, PACE_RECEIVER, worker_now_ms(s->home->worker));
		session_expect_sender(s);
	}
	return true;
}

bool session_judge_recipient(struct session *s, const struct smtp_client_event *e)
{
	uint8_t out[SMTP_REPLY_LINE_MAX];
	struct wire_writer w = wire_writer(out, sizeof out);
	enum smtp_own own;

	if (!s->home->queue || e->command.verb != SMTP_VERB_RCPT || s->sends_as == RECIPIENT_OF_CLIENT)
		return false;
	own = recipient_rules_judge(s->listener, RECIPIENT_OF_STRANGER, &e->command.path);
	if (!own)
		return probe_begin(s, e);
	s->home->counters->recipients_denied++;
	smtp_own_write(&w, own);
	probe_refuse(s, e, (struct smtp_span){ (const char *)out, (size_t)wire_writer_len(&w) });
	return true;
}
