/* session_entry.c: who may come in, who the sender is, and where it wants to go: by the kernel, or by a PROXY header.
 */
#include "smtpproxy/sender/session_entry.h"

#include "net/limits/admission.h"
#include "net/report/log.h"
#include "net/socket/capture.h"
#include "smtpproxy/policy/destination_rules.h"
#include "smtpproxy/sender/session_commands.h"
#include "smtpproxy/sender/session_life.h"

#define HEADER_MS 5000u /* for a PROXY header */

/* NULL: senders choose the destination. */
static const struct sockaddr *entry_next_hop(const struct session *s)
{
	const struct sockaddr *to = (const struct sockaddr *)&s->listener->next_hop;
	return to->sa_family == AF_UNSPEC ? NULL : to;
}

/* It gets no banner. It has nothing more to say then, and while we waited for its FIN it would have a place. */
static void entry_turn_away(struct session *s, enum smtp_own why)
{
	session_move(s, SESSION_TALKS);
	s->ended = 1;
	session_end(s, why);
}

static void entry_refuse_destination(struct session *s, const char *cause)
{
	s->home->counters->not_captured++;
	log_event(LOG_INFO, NULL, "connection without a destination", "listener=%s cause=%s",
		s->listener->capture == CAPTURE_NONE ? "proxy" : "captured", cause);
	entry_turn_away(s, SMTP_OWN_MISCONFIGURED);
}

static void entry_refuse(struct session *s, enum smtp_own why)
{
	s->home->counters->sessions_refused++;
	entry_turn_away(s, why);
}

/* @to is of no interest if all mail goes to the queue. */
static void entry_go_in(struct session *s, const struct sockaddr *to)
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
		entry_refuse_destination(s, destination_verdict_text(verdict));
		return;
	}
	const struct destination_goal goal = { .to = to };
	s->destination = outward_find(s->home->outward, &goal, &s->source);
	if (!s->destination) {
		entry_turn_away(s, SMTP_OWN_OVERLOADED);
		return;
	}
	destination_enter(s->destination);
	if (!entry_next_hop(s) && destination_has_its_part(s->destination, now < most ? most - now : 0)) {
		entry_refuse(s, SMTP_OWN_DESTINATION_FULL);
		return;
	}
	session_move(s, SESSION_TALKS);
	session_greet(s);
}

/* @from is who sends the mail. */
static void entry_set_source(struct session *s, const struct sockaddr *from)
{
	s->sends_as = (uint8_t)recipient_rules_sender(s->listener, from);
	s->source.len = (uint8_t)address_bytes(from, s->source.bytes);
	s->source_port = address_port(from);
}

size_t session_entry_header(struct session *s, const uint8_t *in, size_t len)
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
		entry_set_source(s, (const struct sockaddr *)&from);
	session_tx_enter(s, &h);
	session_record_header(s, &h);
	/* The sender that the header names; the peer is the cluster. */
	if (r == 0 && admission_enter_source(s->home->admission, &s->source) < 0) {
		entry_refuse(s, SMTP_OWN_TOO_MANY_CONNECTIONS);
		return taken;
	}
	if (r == 0)
		s->counted = s->source;
	if (s->home->queue || entry_next_hop(s) || r == 0)
		entry_go_in(s, entry_next_hop(s) ? entry_next_hop(s) : (const struct sockaddr *)&to);
	else
		entry_refuse_destination(s, "the PROXY header names none");
	return taken;
}

int session_entry_admit(struct session *s)
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

void session_entry_begin(struct session *s)
{
	struct sockaddr_storage to;
	const struct sockaddr *local = (const struct sockaddr *)&s->listener->address;
	entry_set_source(s, (const struct sockaddr *)&s->peer);
	if (s->listener->capture == CAPTURE_NONE) {
		s->sends_as = RECIPIENT_OF_STRANGER; /* the peer is the cluster, also if its header names nobody */
		deadline_set(s->home->worker, &s->deadline, HEADER_MS);
		if (!address_nets_have(
			    s->listener->trusted, s->listener->trusted_count, (const struct sockaddr *)&s->peer)) {
			s->home->counters->not_captured++;
			session_lose_sender(s);
		}
	} else if (capture_destination(stream_fd(&s->stream), s->listener->capture, local, &to) < 0) {
		entry_refuse_destination(s, "the sender connected to smtpproxy itself");
	} else {
		entry_go_in(s, entry_next_hop(s) ? entry_next_hop(s) : (const struct sockaddr *)&to);
	}
}
