/* courier_name.c: the id is made of the queue's name and the message's id, so that the process that reads the queue
 * back knows it without any note. The number is that of the attempt. When nobody knows how an attempt ended, the next
 * one asks first.
 *
 * A transaction of which the receiver refuses some recipients is begun again without a name: a later process would not
 * know which ones. */
#include "smtpproxy/delivery/courier_name.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "smtp/tx_name.h"

#define ASKED_MAX 4u /* questions of one courier; the receiver refuses numbers without reason then */

void courier_name_begin(struct courier *c, struct destination_goal *goal)
{
	const struct smtpproxy_queue *q = &c->parts->conf->queue;
	struct wire_writer w = wire_writer(c->unique_id, sizeof c->unique_id);
	uint8_t hash[crypto_generichash_BYTES_MIN];

	if (q->xcssltx == CONF_OFF || c->way.hop != WAY_HOP_OF_QUEUE)
		return;
	goal->unique_id = c->unique_id;
	if (c->errand->task == COURIER_PROBES) {
		randombytes_buf(c->unique_id, sizeof c->unique_id);
		return;
	}
	crypto_generichash(hash, sizeof hash, (const uint8_t *)q->name, strlen(q->name), NULL, 0);
	wire_put_bytes(&w, hash, sizeof c->unique_id - sizeof(uint64_t));
	wire_put_u64(&w, c->mail.id);
	c->naming = c->mail.past == QUEUE_IN_DOUBT ? COURIER_ASKS_FIRST : COURIER_NAMED;
}

static struct smtp_tx_name courier_name_of(const struct courier *c)
{
	struct smtp_tx_name name = { .number = c->mail.attempts + 1u };

	sodium_bin2hex(name.id, sizeof name.id, c->unique_id, sizeof c->unique_id);
	return name;
}

int courier_name_write(const struct courier *c, char *out, size_t cap)
{
	const struct smtp_tx_name name = courier_name_of(c);

	if (c->naming != COURIER_NAMED)
		return 0;
	return snprintf(out, cap, " XCSSLTX=%s/%" PRIu64, name.id, name.number);
}

size_t courier_name_ask(struct courier *c, uint8_t *out, size_t cap)
{
	struct smtp_tx_question question = { .name = courier_name_of(c) };
	const struct smtp_span key = smtp_ehlo_params(&c->onward->greeting.words->offers, SMTP_CAP_XCSSLTX);
	struct wire_writer w = wire_writer(out, cap);

	smtp_span_copy(key, question.entry, sizeof question.entry);
	smtp_tx_question_write(&w, &question);
	c->asked++;
	c->naming = COURIER_ASKS_FIRST;
	c->parts->counters->deliveries_asked++;
	return (size_t)wire_writer_len(&w);
}

enum courier_next courier_name_begins(struct courier *c)
{
	const struct greeting *g = &c->onward->greeting;

	if (!(g->has & SMTP_CAP_BIT(SMTP_CAP_XCSSLTX)) ||
		!smtp_tx_entry_is_good(smtp_ehlo_params(&g->words->offers, SMTP_CAP_XCSSLTX)))
		c->naming = COURIER_UNNAMED;
	return c->naming == COURIER_ASKS_FIRST ? COURIER_NEXT_ASK : COURIER_NEXT_MAIL;
}

/* Other recipients than one may have another past than the note says, so it goes on without a name. */
enum courier_next courier_name_refused(struct courier *c)
{
	if (c->envelope.recipients == 1 && c->asked < ASKED_MAX)
		return COURIER_NEXT_ASK;
	c->naming = COURIER_UNNAMED;
	return COURIER_NEXT_MAIL;
}

/* NEVER: it is repeated under the next number, because the question was a fence. UNKNOWN as well: it may come twice, as
 * with any receiver without names. */
enum courier_next courier_name_answered(
	struct courier *c, const struct smtp_reply_line *line, struct smtp_reply_line *decided)
{
	if (smtp_fate_parse(line, decided) == SMTP_FATE_DECIDED)
		return COURIER_NEXT_SETTLE;
	queue_retry(c->parts->queue, c->mail.id, QUEUE_STEP_BEGIN, 0, c->mail.note);
	c->mail.attempts++;
	c->naming = COURIER_NAMED;
	return COURIER_NEXT_MAIL;
}
