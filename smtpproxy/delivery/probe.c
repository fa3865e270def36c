/* probe.c: remembers the answers of receivers, in a table in which a new one may take the place of another. Whoever
 * asks about a recipient while a probe is under way waits for that one. */
#include "smtpproxy/delivery/probe.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "net/report/log_pace.h"
#include "proto/error.h"
#include "smtp/domain.h"
#include "smtpproxy/delivery/courier.h"
#include "smtpproxy/envelope/envelope.h"

#define PROBE_SENDER "double-bounce" /* at our name, as Postfix probes (address_verify_sender) */
#define SLOTS        4096u
#define ANSWER_MS    10000u   /* a sender waits so long */
#define TAKEN_MS     3600000u /* how long an answer counts */
#define REFUSED_MS   300000u
#define SILENT_MS    30000u /* so long a receiver without an answer is not asked again */

/* Of a recipient; or a line of the queue whose receiver is silent. */
struct known {
	char *name;  /* NULL: the slot is free */
	char *reply; /* NULL: it is taken */
	uint64_t till_ms;
};

struct probes {
	const struct delivery_parts *parts;
	LIST_HEAD(, probe) under_way;
	uint32_t count;
	uint8_t hash_key[crypto_shorthash_KEYBYTES]; /* strangers choose the names */
	struct known known[SLOTS];
};

struct probe {
	struct probes *probes;
	struct courier *courier; /* NULL: it is over */
	LIST_ENTRY(probe) next;
	LIST_HEAD(, probe_wait) waits;
	struct deadline deadline;
	char line[LINE_NAME_MAX + 1]; /* of the queue */
	char mailbox[];
};

/* What is known */

/* Names are compared without regard to case. */
static struct known *slot_of(struct probes *p, struct smtp_span name)
{
	uint8_t hash[crypto_shorthash_BYTES], text[512];
	size_t len = 0;
	for (; len < name.len && len < sizeof text; len++)
		text[len] = (uint8_t)(name.at[len] | 0x20);
	crypto_shorthash(hash, text, len, p->hash_key);
	return &p->known[(hash[0] | hash[1] << 8) % SLOTS];
}

/* NULL: it is not known. */
static const struct known *probes_find(struct probes *p, struct smtp_span name)
{
	const struct known *k = slot_of(p, name);
	return k->name && smtp_span_is(name, k->name) && worker_now_ms(p->parts->worker) < k->till_ms ? k : NULL;
}

static void probes_forget_known(struct known *k)
{
	free(k->name);
	free(k->reply);
	*k = (struct known){ 0 };
}

static void probes_remember(struct probes *p, const char *name, const char *reply, uint32_t for_ms)
{
	struct known *k = slot_of(p, smtp_span_of(name));
	probes_forget_known(k);
	*k = (struct known){ strdup(name), reply ? strdup(reply) : NULL, worker_now_ms(p->parts->worker) + for_ms };
}

/* The end */

/* A reply to RCPT, which is behind MAIL. Without any receiver, the DNS has answered. A 421 is about the connection. */
static bool is_answered(const struct courier *c)
{
	const struct fate_one *f = c->fates.at;

	return f && (c->at ? f->reply[0] && strncmp(f->reply, "421", 3) : f->fate == FATE_FAILED && !c->destination);
}

static bool on_probe_disconnected(const struct courier *c, unsigned messages)
{
	return messages >= 2 && !is_answered(c);
}

/* By its enhanced code, if it has one (RFC 3463 3.2 and 3.3): others are about our sender, or policy. Exchange says
 * 5.1.10 of a name that does not exist, and as a service 5.4.1. */
static bool is_about_recipient(const char *reply)
{
	unsigned subject = 2, detail = 0;
	sscanf(reply, "%*3u 5.%u.%u", &subject, &detail);
	return subject == 2 || (subject == 4 && detail == 1) ||
	       (subject == 1 && ((detail >= 1 && detail <= 6) || detail == 10));
}

/* A receiver that puts the recipient off says nothing against it, and one that was not asked says nothing at all. */
static void on_probe_over(struct courier *c, enum courier_line line)
{
	struct probe *b = c->sender;
	const struct fate_one *f = c->fates.at;
	struct probe_wait *w;
	char reply[FATE_REPLY_MAX + sizeof "\r\n"];
	const char *refusal = NULL;
	uint32_t for_ms = SILENT_MS;
	/* It waits, and others have the connections of the receiver, or its place. */
	if (c->state == COURIER_WAITS && (!c->destination || c->destination->share->in[DESTINATION_LEASED])) {
		for_ms = 0;
	} else if (!is_answered(c)) {
		probes_remember(b->probes, b->line, NULL, SILENT_MS);
		log_paced(LOG_WARNING, NULL, "recipients not verified", "line=%s cause=%s effect=\"they are accepted\"",
			b->line, f && f->reply[0] ? f->reply : "no answer in time");
	} else if (f->fate == FATE_FAILED && (!c->at || is_about_recipient(f->reply))) {
		snprintf(reply, sizeof reply, "%s\r\n", f->reply);
		refusal = reply;
		for_ms = REFUSED_MS;
	} else if (f->fate == FATE_SENT) {
		for_ms = TAKEN_MS;
	}
	probes_remember(b->probes, b->mailbox, refusal, for_ms);
	deadline_cancel(&b->deadline);
	b->courier = NULL;
	while ((w = LIST_FIRST(&b->waits))) {
		probe_forget(w);
		w->on_known(w);
	}
	LIST_REMOVE(b, next);
	b->probes->count--;
	free(b);
}

static void on_probe_deadline(struct deadline *d)
{
	courier_end(container_of(d, struct probe, deadline)->courier, COURIER_LET_GO);
}

void probe_forget(struct probe_wait *w)
{
	if (w->of)
		LIST_REMOVE(w, next);
	w->of = NULL;
}

/* The beginning */

static const struct courier_errand probe_errand = {
	.task = COURIER_PROBES,
	.asks_again = on_probe_disconnected,
	.on_over = on_probe_over,
};

/* 0 or CSSL_E_NO_MEMORY. It may be over at once. */
static int probe_begin(struct probes *p, const char *line, struct smtp_span mailbox)
{
	struct probe *b = calloc(1, sizeof *b + mailbox.len + 1);
	const struct smtp_span none = { 0 };
	struct envelope_text text = { 0 }; /* of a message that does not exist */
	char sender[SMTP_DOMAIN_MAX + sizeof PROBE_SENDER "@"];

	snprintf(sender, sizeof sender, PROBE_SENDER "@%s", p->parts->conf->name);
	if (b && !envelope_begin(&text, none, none, smtp_span_of(sender), none) &&
		!envelope_add(&text, mailbox, none)) {
		struct queue_taken mail = { .memory = text.at, .envelope = { (const uint8_t *)text.at, text.len } };
		b->courier = courier_create(p->parts, &probe_errand, b, &mail);
	}
	if (!b || !b->courier) {
		envelope_free(&text);
		free(b);
		return CSSL_E_NO_MEMORY;
	}
	memcpy(b->mailbox, mailbox.at, mailbox.len);
	snprintf(b->line, sizeof b->line, "%s", line);
	b->probes = p;
	LIST_INSERT_HEAD(&p->under_way, b, next);
	p->count++;
	b->deadline.fn = on_probe_deadline;
	deadline_set(p->parts->worker, &b->deadline, ANSWER_MS);
	b->courier->want.sender = (struct client_address){ .len = 1 }; /* all probes take turns as one sender */
	courier_start(b->courier, b->line);
	return 0;
}

static struct probe *find_under_way(struct probes *p, struct smtp_span mailbox)
{
	struct probe *b;
	LIST_FOREACH(b, &p->under_way, next)
	if (smtp_span_is(mailbox, b->mailbox))
		break;
	return b;
}

enum probe_answer probes_ask(
	struct probes *p, const char *line, struct smtp_span mailbox, struct probe_wait *w, const char **reply)
{
	const struct known *k = probes_find(p, mailbox);
	struct probe *b = find_under_way(p, mailbox);
	*reply = k ? k->reply : NULL;
	if (k || probes_find(p, smtp_span_of(line)))
		return *reply ? PROBE_REFUSES : PROBE_TAKES;
	if (!b && p->count < p->parts->conf->limits.sessions && !probe_begin(p, line, mailbox))
		b = find_under_way(p, mailbox);
	if (!b || !b->courier)
		return PROBE_PUTS_OFF;
	w->of = b;
	LIST_INSERT_HEAD(&b->waits, w, next);
	return PROBE_ASKS;
}

/* Life */

struct probes *probes_create(const struct delivery_parts *parts)
{
	struct probes *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->parts = parts;
	crypto_shorthash_keygen(p->hash_key);
	return p;
}

void probes_forget(struct probes *p)
{
	for (unsigned i = 0; i < SLOTS; i++)
		probes_forget_known(&p->known[i]);
}

void probes_destroy(struct probes *p)
{
	if (p)
		probes_forget(p);
	free(p);
}
