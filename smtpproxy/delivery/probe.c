/* probe.c: remembers the answers of receivers, in a table in which a new one may take the place of another. */
#include "smtpproxy/delivery/probe.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/container_of.h"
#include "net/log_pace.h"
#include "smtpproxy/delivery/courier.h"
#include "smtpproxy/envelope/line_name.h"

#define SLOTS      4096u
#define ANSWER_MS  10000u   /* a sender waits so long */
#define TAKEN_MS   3600000u /* how long an answer counts */
#define REFUSED_MS 300000u
#define SILENT_MS  30000u /* so long a receiver without an answer is not asked again */

/* Of a recipient; or a line of the queue whose receiver is silent. */
struct known {
	char *name;  /* NULL: the slot is free */
	char *reply; /* NULL: it is taken */
	uint64_t till_ms;
};

struct probes {
	struct delivery *delivery;
	const struct delivery_parts *parts;
	const struct probe *starting;
	uint8_t hash_key[crypto_shorthash_KEYBYTES]; /* strangers choose the names */
	struct known known[SLOTS];
};

struct probe {
	struct probes *probes;
	struct courier *courier;
	struct probe_wait *wait; /* NULL: nobody waits any more */
	struct deadline deadline;
	char line[LINE_NAME_MAX + 1]; /* of the queue */
	char mailbox[];
};

/* What is known */

static struct known *slot_of(struct probes *p, struct smtp_span name)
{
	uint8_t hash[crypto_shorthash_BYTES];
	crypto_shorthash(hash, (const uint8_t *)name.at, name.len, p->hash_key);
	return &p->known[(hash[0] | hash[1] << 8) % SLOTS];
}

/* NULL: it is not known. */
static const struct known *find(struct probes *p, struct smtp_span name)
{
	const struct known *k = slot_of(p, name);
	const int is_it = k->name && smtp_span_is(name, k->name) && worker_now_ms(p->parts->worker) < k->till_ms;
	return is_it ? k : NULL;
}

static void forget(struct known *k)
{
	free(k->name);
	free(k->reply);
	*k = (struct known){ 0 };
}

static void remember(struct probes *p, const char *name, const char *reply, uint32_t for_ms)
{
	struct known *k = slot_of(p, smtp_span_of(name));
	forget(k);
	*k = (struct known){ strdup(name), reply ? strdup(reply) : NULL, worker_now_ms(p->parts->worker) + for_ms };
}

/* The end */

static void note_silence(const struct probe *b, const char *cause)
{
	remember(b->probes, b->line, NULL, SILENT_MS);
	log_paced(LOG_WARNING, NULL, "recipients not verified", "line=%s cause=%s effect=\"they are accepted\"",
		b->line, cause);
}

/* RESET: the receiver has answered RCPT. Without any receiver, the DNS has answered. */
static int is_answered(const struct courier *c)
{
	return c->state == COURIER_RESET || (c->fates.at && c->fates.at->fate == FATE_FAILED && !c->destination);
}

/* A receiver that puts the recipient off says nothing against it. */
void probe_over(struct courier *c)
{
	struct probe *b = c->probe;
	struct probe_wait *w = b->wait;
	const int starts = b->probes->starting == b;
	char reply[FATE_REPLY_MAX + sizeof "\r\n"];
	const char *refusal = NULL;
	uint32_t for_ms = SILENT_MS;
	if (!is_answered(c)) {
		note_silence(b, c->fates.at && c->fates.at->reply[0] ? c->fates.at->reply : "no answer in time");
	} else if (c->fates.at->fate == FATE_FAILED) {
		snprintf(reply, sizeof reply, "%s\r\n", c->fates.at->reply);
		refusal = reply;
		for_ms = REFUSED_MS;
	} else if (c->fates.at->fate == FATE_SENT) {
		for_ms = TAKEN_MS;
	}
	remember(b->probes, b->mailbox, refusal, for_ms);
	deadline_cancel(&b->deadline);
	free(b);
	if (!w)
		return;
	w->of = NULL;
	if (!starts)
		w->on_known(w);
}

static void on_deadline(struct deadline *d)
{
	courier_end(container_of(d, struct probe, deadline)->courier, COURIER_LET_GO);
}

void probe_forget(struct probe_wait *w)
{
	if (w->of)
		w->of->wait = NULL;
	w->of = NULL;
}

/* The beginning */

/* The envelope of a message that does not exist. It is told as if it had come with TLS, as some have. NULL: out of
 * memory. */
static struct courier *create_courier(struct probes *p, const struct probe *b)
{
	const struct smtp_span none = { 0 };
	struct envelope_text text = { 0 };
	struct courier *c = NULL;
	if (!envelope_begin(&text, none, none, none, smtp_span_of(ENVELOPE_SECURED)) &&
		!envelope_add(&text, smtp_span_of(b->mailbox), none)) {
		struct queue_taken mail = { .memory = text.at, .envelope = { (const uint8_t *)text.at, text.len } };
		c = courier_create(p->delivery, p->parts, NULL, &mail);
	}
	if (!c)
		envelope_free(&text);
	return c;
}

/* @w waits for nothing if it is over at once, or could not begin. */
static void begin(struct probes *p, const char *line, struct smtp_span mailbox, struct probe_wait *w)
{
	struct probe *b = calloc(1, sizeof *b + mailbox.len + 1);
	if (!b)
		return;
	memcpy(b->mailbox, mailbox.at, mailbox.len);
	snprintf(b->line, sizeof b->line, "%s", line);
	b->courier = create_courier(p, b);
	if (!b->courier) {
		free(b);
		return;
	}
	w->of = b;
	b->wait = w;
	b->probes = p;
	b->deadline.fn = on_deadline;
	deadline_set(p->parts->worker, &b->deadline, ANSWER_MS);
	b->courier->probe = b;
	b->courier->want.sender = (struct client_address){ .len = 1 }; /* all probes take turns as one sender */
	delivery_add(p->delivery, b->courier);
	p->starting = b;
	courier_start(b->courier, b->line);
	p->starting = NULL;
}

enum probe_answer probes_ask(
	struct probes *p, const char *line, struct smtp_span mailbox, struct probe_wait *w, const char **reply)
{
	const struct known *k = find(p, mailbox);
	if (k) {
		*reply = k->reply;
		return k->reply ? PROBE_REFUSES : PROBE_TAKES;
	}
	if (!find(p, smtp_span_of(line)))
		begin(p, line, mailbox, w);
	return w->of ? PROBE_ASKS : PROBE_TAKES;
}

/* Life */

struct probes *probes_create(struct delivery *d, const struct delivery_parts *parts)
{
	struct probes *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->delivery = d;
	p->parts = parts;
	crypto_shorthash_keygen(p->hash_key);
	return p;
}

void probes_forget(struct probes *p)
{
	for (unsigned i = 0; i < SLOTS; i++)
		forget(&p->known[i]);
}

void probes_destroy(struct probes *p)
{
	if (p)
		probes_forget(p);
	free(p);
}
