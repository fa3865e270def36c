/* preamble.c: the dialogue before STARTTLS. It reads one command after the other while there is room for the
 * replies. */
#include "sslagent/preamble/preamble.h"

#include <stdlib.h>

#include "net/limits/handshake_limit.h"
#include "net/memory/container_of.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "proto/frame.h"
#include "sslagent/counters.h"
#include "sslagent/preamble/preamble_inside.h"

#define COMMANDS_MAX 1000u

/* --- the worker's --- */

static void preamble_bury_all(struct turn_end *t)
{
	struct preamble_home *home = container_of(t, struct preamble_home, burial);

	while (home->buried) {
		struct preamble *p = home->buried;
		home->buried = p->next;
		free(p);
	}
}

int preamble_home_open(struct preamble_home *home)
{
	const struct conf *conf = home->conf;

	home->window_len = conf->limits.window_len;
	home->max = conf->limits.preambles;
	home->burial.fn = preamble_bury_all;
	home->direct = handshake_limit_create(conf->limits.preambles, conf->limits.preambles_per_source);
	home->rules = calloc(conf->listener_count + 1, sizeof *home->rules);
	for (size_t i = 0; home->rules && i < conf->listener_count; i++) {
		const struct conf_smtp *smtp = &conf->listeners[i].smtp;
		struct preamble_rules *r = &home->rules[i];
		conf_smtp_offers(smtp, &r->offers);
		r->rules = (struct smtp_preamble_rules){ .tls = smtp->starttls,
			.name = smtp->hostname,
			.banner = smtp->banner,
			.offers = &r->offers,
			.errors_max = (uint16_t)smtp->refusals_max,
			.commands_max = COMMANDS_MAX,
			.lenient = SMTP_PARSE_LENIENT | SMTP_PARSE_JUDGED };
	}
	return home->rules && home->direct ? 0 : CSSL_E_NO_MEMORY;
}

void preamble_home_release(struct preamble_home *home)
{
	preamble_bury_all(&home->burial);
	handshake_limit_destroy(home->direct);
	free(home->rules);
	home->rules = NULL;
	home->direct = NULL;
}

/* --- end --- */

/* The state that comes next has limits of its own: of handshakes, or of connections. */
static void stop_talking(struct preamble *p, enum preamble_state next)
{
	if (p->state == PREAMBLE_TALKING)
		p->home->talking--;
	p->state = (uint8_t)next;
}

/* The memory lasts until the end of the turn, because callers further up the stack still use it. */
static void preamble_release(struct preamble *p)
{
	struct preamble_home *home = p->home;

	stop_talking(p, PREAMBLE_ENDED);
	preamble_relay_drop(p);
	deadline_cancel(&p->deadline);
	endpoints_clear(&p->endpoints);
	home->count--;
	p->next = home->buried;
	home->buried = p;
	worker_at_turn_end(home->worker, &home->burial);
}

void preamble_end(struct preamble *p, enum end_reason reason, enum preamble_end how)
{
	if (p->state == PREAMBLE_ENDED)
		return;
	log_event(LOG_DEBUG, &p->id, "preamble ended", "reason=%s", end_reason_text(reason));
	p->carrier->ops->end(p->carrier, reason, how);
	preamble_release(p);
}

void preamble_forget(struct preamble *p)
{
	if (p->state != PREAMBLE_ENDED)
		preamble_release(p);
}

void preamble_say(struct preamble *p, const void *words, size_t len, enum preamble_words what)
{
	if (len == 0)
		return;
	p->said += len;
	p->carrier->ops->say(p->carrier, words, len, what);
}

void preamble_end_saying(struct preamble *p, enum end_reason reason, enum smtp_own words)
{
	uint8_t reply[SMTP_PREAMBLE_REPLY_MAX];
	struct wire_writer w = wire_writer(reply, sizeof reply);

	smtp_own_write(&w, words);
	preamble_say(p, reply, (size_t)wire_writer_len(&w), PREAMBLE_WHOLE);
	preamble_end(p, reason, PREAMBLE_ORDERLY);
}

/* --- the dialogue --- */

static bool preamble_has_room(const struct preamble *p)
{
	return p->said - p->drained + SMTP_PREAMBLE_REPLY_MAX <= FRAME_PREAMBLE_WINDOW;
}

static enum end_reason why_ended(const struct preamble *p)
{
	return p->dialogue.last == SMTP_OWN_BYE ? END_DONE : END_PREAMBLE_REFUSED;
}

static void preamble_answer(struct preamble *p, enum smtp_preamble_event event, const uint8_t *reply, size_t len)
{
	switch (event) {
	case SMTP_PREAMBLE_ON_MORE: break;
	case SMTP_PREAMBLE_ON_REPLY: preamble_say(p, reply, len, PREAMBLE_WHOLE); break;
	case SMTP_PREAMBLE_ON_STARTTLS:
		count(COUNT_STARTTLS_ANSWERED);
		p->carrier->ops->starttls(p->carrier, reply, len, p->taken);
		preamble_release(p);
		break;
	case SMTP_PREAMBLE_ON_MAIL:
		count(COUNT_MAIL_IN_CLEAR);
		stop_talking(p, PREAMBLE_RELAYING);
		deadline_cancel(&p->deadline);
		p->carrier->ops->relayed(p->carrier);
		preamble_relay_begin(p, p->dialogue.held);
		break;
	case SMTP_PREAMBLE_ON_END:
		count(COUNT_PREAMBLES_ENDED);
		preamble_say(p, reply, len, PREAMBLE_WHOLE);
		preamble_end(p, why_ended(p), PREAMBLE_ORDERLY);
		break;
	}
}

static size_t preamble_talk(struct preamble *p, const uint8_t *data, size_t len)
{
	uint8_t reply[SMTP_PREAMBLE_REPLY_MAX];
	size_t used = 0;

	while (used < len && p->state == PREAMBLE_TALKING && preamble_has_room(p)) {
		struct wire_writer w = wire_writer(reply, sizeof reply);
		size_t taken;
		p->greeted = (uint8_t)p->dialogue.state;
		enum smtp_preamble_event event =
			smtp_preamble_read(&p->dialogue, (const char *)data + used, len - used, &taken, &w);
		used += taken;
		p->taken += taken;
		preamble_answer(p, event, reply, (size_t)wire_writer_len(&w));
	}
	return used;
}

size_t preamble_read(struct preamble *p, const uint8_t *data, size_t len)
{
	size_t used = 0;

	for (size_t n = 1; n && used < len && p->state != PREAMBLE_ENDED; used += n)
		n = p->state == PREAMBLE_TALKING ? preamble_talk(p, data + used, len - used)
						 : preamble_relay_read(p, data + used, len - used);
	if (used && p->state != PREAMBLE_ENDED)
		p->carrier->ops->taken(p->carrier, p->taken);
	return used;
}

/* --- what else happens --- */

void preamble_drained(struct preamble *p, uint64_t bytes)
{
	if (p->state == PREAMBLE_ENDED || bytes > p->said || bytes < p->drained)
		return;
	const bool had_room = preamble_has_room(p);
	p->drained = bytes;
	if (p->state == PREAMBLE_RELAYING)
		preamble_relay_look(p);
	else if (!had_room && preamble_has_room(p))
		p->carrier->ops->wants(p->carrier);
}

void preamble_fin(struct preamble *p)
{
	p->client = PREAMBLE_CLIENT_ENDED;
	if (p->state == PREAMBLE_TALKING)
		preamble_end(p, END_CLIENT_CLOSED, PREAMBLE_ORDERLY);
	else if (p->state == PREAMBLE_RELAYING)
		preamble_relay_look(p);
}

static enum smtp_own words_for(enum end_reason reason)
{
	switch (reason) {
	case END_PREAMBLE_TIMEOUT:
	case END_IDLE_TIMEOUT: return SMTP_OWN_TIMED_OUT;
	case END_LIMIT_PREAMBLES: return SMTP_OWN_TOO_MANY_CONNECTIONS;
	default: return SMTP_OWN_SHUTTING_DOWN;
	}
}

static bool is_at_once(enum end_reason reason)
{
	return reason == END_IDLE_TIMEOUT || reason == END_BACKEND_TIMEOUT || reason == END_OPERATOR;
}

/* Between two commands this cuts nothing off. In mail an end waits for a checkpoint, but not a time limit or an
 * operator. */
void preamble_finish(struct preamble *p, enum end_reason reason)
{
	if (p->state == PREAMBLE_TALKING) {
		preamble_end_saying(p, reason, words_for(reason));
	} else if (p->state == PREAMBLE_RELAYING && is_at_once(reason)) {
		preamble_relay_time_out(p, reason);
	} else if (p->state == PREAMBLE_RELAYING) {
		p->wish = PREAMBLE_FINISHING;
		p->reason = (uint8_t)reason;
		preamble_relay_look(p);
	}
}

void preamble_go_on(struct preamble *p)
{
	p->pace = PREAMBLE_AT_WORK;
	if (p->state == PREAMBLE_RELAYING)
		preamble_relay_look(p);
}

static void preamble_on_deadline(struct deadline *d)
{
	preamble_finish(container_of(d, struct preamble, deadline), END_PREAMBLE_TIMEOUT);
}

/* --- begin --- */

struct preamble *preamble_open(struct preamble_home *home, struct preamble_carrier *carrier,
	const struct conf_listener *listener, const struct connection_id *id, const Cssl__Endpoints *endpoints)
{
	uint8_t banner[SMTP_PREAMBLE_REPLY_MAX];
	struct wire_writer w = wire_writer(banner, sizeof banner);
	struct preamble *p = home->max && home->talking >= home->max ? NULL : calloc(1, sizeof *p);

	if (!p || endpoints_from_message(&p->endpoints, endpoints) < 0) {
		free(p);
		return NULL;
	}
	home->count++;
	home->talking++;
	p->home = home;
	p->carrier = carrier;
	p->listener = listener;
	p->id = *id;
	p->deadline.fn = preamble_on_deadline;
	smtp_preamble_begin(&p->dialogue, &home->rules[listener - home->conf->listeners].rules, &w);
	deadline_set(home->worker, &p->deadline, listener->smtp.preamble_timeout_ms);
	count(COUNT_PREAMBLES);
	preamble_say(p, banner, (size_t)wire_writer_len(&w), PREAMBLE_WHOLE);
	return p;
}
