/* courier_settle.c: the end of a delivery. The queue deletes the message or tries it again later, or tells its sender
 * which recipients failed. */
#include "smtpproxy/delivery/courier_settle.h"

#include <stdio.h>
#include <stdlib.h>

#include "net/socket/address.h"
#include "smtp/domain.h"
#include "smtpproxy/delivery/notice.h"

static uint32_t backoff_ms(const struct courier *c)
{
	const struct smtpproxy_queue *q = &c->parts->conf->queue;
	uint64_t ms = q->retry_first_ms;

	for (unsigned i = 0; i < c->mail.attempts && ms < q->retry_last_ms; i++)
		ms *= 2;
	return ms < q->retry_last_ms ? (uint32_t)ms : q->retry_last_ms;
}

/* PART: the recipients that the transaction had no room for get the message in a next one. Each such transaction
 * delivers to one recipient at least, so there are not more of them than recipients. */
static void put_back(struct courier *c, enum queue_step step, uint32_t in_ms)
{
	struct queue *q = c->parts->queue;
	const int64_t due_ms = step == QUEUE_STEP_PART ? 0 : queue_now_ms(q) + in_ms;
	size_t len;
	char *note = fates_note(&c->fates, &len);
	const struct content_bytes bytes = { (const uint8_t *)note, note ? len : 0 };

	*(step == QUEUE_STEP_PART ? &c->parts->counters->deliveries_split : &c->parts->counters->delivery_retries) += 1;
	queue_retry(q, c->mail.id, step, due_ms, bytes);
	free(note);
}

bool courier_has_expired(const struct courier *c)
{
	const int64_t age_ms = queue_now_ms(c->parts->queue) - c->mail.accepted_ms;

	return age_ms > (int64_t)c->parts->conf->queue.expire_s * 1000;
}

/* For recipients that expire, the last reply stays the reason. */
static void courier_expire(struct courier *c)
{
	static const char text[] = "451 4.4.7 Message expired";

	for (unsigned i = 0; i < c->fates.count; i++) {
		struct fate_one *f = &c->fates.at[i];

		if (f->fate == FATE_OPEN && !f->reply[0])
			fates_set(&c->fates, i, FATE_FAILED, smtp_span_of(text));
		else if (f->fate == FATE_OPEN)
			f->fate = FATE_FAILED;
	}
}

/* No recipient is open. */
static void courier_conclude(struct courier *c)
{
	const unsigned failed = fates_count(&c->fates, FATE_FAILED);

	if (failed)
		c->parts->counters->failed++;
	else
		c->parts->counters->delivered++;
	if (!failed && !notice_is_due(c))
		queue_done(c->parts->queue, c->mail.id);
	else if (notice_send(c))
		put_back(c, QUEUE_STEP_ATTEMPT, c->parts->conf->queue.retry_first_ms);
}

void courier_settle(struct courier *c)
{
	struct queue *q = c->parts->queue;

	if (c->errand->task == COURIER_PROBES)
		return;
	fates_unsend(&c->fates);
	if (courier_has_expired(c))
		courier_expire(c);
	if (!fates_count(&c->fates, FATE_OPEN)) {
		courier_conclude(c);
	} else if (c->naming == COURIER_ASKS_FIRST) { /* its name will be asked for, so the attempt does not count */
		c->parts->counters->delivery_retries++;
		queue_put_back(q, c->mail.id, queue_now_ms(q) + backoff_ms(c), QUEUE_IN_DOUBT);
	} else {
		put_back(c, c->left == COURIER_REST_NEXT ? QUEUE_STEP_PART : QUEUE_STEP_ATTEMPT, backoff_ms(c));
	}
}

static void set_fate(struct courier *c, unsigned at, enum fate fate, const char *reply)
{
	const struct destination *d = c->destination;
	const unsigned knows = c->onward->greeting.has & SMTP_CAP_BIT(SMTP_CAP_DSN);
	char from[FATE_FROM_MAX + 1] = "unknown";
	uint8_t bytes[16];
	const size_t len = address_bytes((const struct sockaddr *)&d->route.to, bytes);

	if (d->host[0])
		snprintf(from, sizeof from, "%s", d->host);
	else if (len)
		smtp_domain_literal(bytes, len, from); /* it was not found by name (RFC 5321 4.1.3) */
	fates_set(&c->fates, at, fate, smtp_span_of(reply));
	fates_set_from(&c->fates, at, smtp_span_of(from), knows ? FATE_REPORTS : FATE_REPORTS_NONE);
}

void courier_note_reply(struct courier *c, const struct smtp_reply_line *line)
{
	char text[FATE_REPLY_MAX + 1];
	/* DATA and RSET deliver nothing by a 2xx. A demand for TLS is no failure: the message goes again, with TLS. */
	bool takes = c->state == COURIER_RCPT || c->state == COURIER_DOT;
	enum fate fate = line->code / 100 == 5 && c->demand != COURIER_DEMANDS_TLS ? FATE_FAILED : FATE_OPEN;

	if (line->code / 100 == 2 && takes)
		fate = FATE_DELIVERED;
	snprintf(text, sizeof text, "%u %.*s", line->code, (int)line->text.len, line->text.at);
	if (c->state == COURIER_RCPT) {
		set_fate(c, c->at - 1, fate == FATE_DELIVERED ? FATE_SENT : fate, text);
		return;
	}
	for (unsigned i = 0; i < c->fates.count; i++)
		if (c->fates.at[i].fate == (c->state == COURIER_MAIL ? FATE_OPEN : FATE_SENT))
			set_fate(c, i, fate, text);
}
