/* deliver.c: the operations of a delivery, and of an operator, on messages. */
#include <stdlib.h>
#include <string.h>

#include "net/report/log_pace.h"
#include "proto/error.h"
#include "smtpproxy/queue/queue_core.h"
#include "smtpproxy/queue/stock.h"

#define NOTICE_LATER_MS 60000

static struct item *deliver_find(struct queue *q, uint64_t id, unsigned states)
{
	struct item *i = item_find(&q->items, id);

	return i && i->kind == ITEM_MESSAGE && states & 1u << i->state ? i : NULL;
}

static int deliver_read(const struct queue *q, const struct item *i, struct queue_taken *t)
{
	uint8_t *memory = malloc(i->sealed_len + i->note_len);
	struct content m, state = { 0 };
	int r = memory ? content_open(q->shared.seal, ITEM_MESSAGE, i->id, i->sealed, i->sealed_len, memory, &m)
		       : CSSL_E_NO_MEMORY;

	if (!r && i->note)
		r = content_open(
			q->shared.seal, ITEM_STATE, i->id, i->note, i->note_len, memory + i->sealed_len, &state);
	if (r) {
		free(memory);
		return r;
	}
	t->memory = memory;
	t->envelope = m.envelope;
	t->body = m.rest;
	t->note = state.rest;
	t->accepted_ms = i->accepted_ms;
	return 0;
}

bool queue_may_take(const struct queue *q)
{
	return q->stats.deletes_unconfirmed < QUEUE_UNCONFIRMED_MAX || !queue_counting(q);
}

int queue_take(struct queue *q, struct content_bytes destination, struct queue_taken *out)
{
	struct queue_destination *d =
		destination_get(&q->destinations, (const char *)destination.data, destination.len, false);
	const struct item *i;

	memset(out, 0, sizeof *out);
	if (!d || !d->ready || q->state != QUEUE_ACTIVE || d->flow == DESTINATION_STOPPED)
		return QUEUE_NONE;
	i = queue_may_take(q) ? destination_take(d, redis_link_clock_ms() * 1000) : NULL;
	if (!i)
		return QUEUE_LATER;
	out->id = i->id;
	out->accepted_ms = i->accepted_ms;
	out->attempts = i->attempts;
	out->past = i->past == ITEM_PAST_IN_DOUBT ? QUEUE_IN_DOUBT : QUEUE_CLEAR;
	return 0;
}

int queue_open(struct queue *q, struct queue_taken *t)
{
	struct item *i = deliver_find(q, t->id, 1u << ITEM_TAKEN);
	const int r = i ? deliver_read(q, i, t) : QUEUE_NONE;

	if (!i || !r || r == CSSL_E_NO_MEMORY)
		return r;
	log_paced(LOG_ERROR, NULL, "a message is held", "message=%llx cause=%s", (unsigned long long)i->id,
		"its state cannot be opened");
	destination_hold(&q->destinations, i);
	return QUEUE_NONE;
}

void queue_taken_free(struct queue_taken *t)
{
	free(t->memory);
	memset(t, 0, sizeof *t);
}

bool queue_may_deliver(const struct queue *q)
{
	const int64_t now_ms = redis_link_clock_ms();

	if (q->state != QUEUE_ACTIVE)
		return false;
	if (lease_holds(&q->lease, now_ms))
		return true;
	if (queue_backups_in(q, ~(1u << BACKUP_AWAY)))
		return false;
	/* While this process was stopped, another one may have been started in its place. The servers tell, if one
	 * answers. */
	return q->conf.role == QUEUE_ALONE && now_ms >= q->lease.from_ms && now_ms - q->ticked_ms <= QUEUE_STALL_MS &&
	       (!q->stalled_ms || now_ms - q->stalled_ms >= (int64_t)q->conf.give_up_ms);
}

int queue_done(struct queue *q, uint64_t id)
{
	struct item *i = deliver_find(q, id, 1u << ITEM_TAKEN);

	if (!i)
		return QUEUE_NONE;
	q->stats.delivered++;
	stock_remove(q, i);
	return 0;
}

/* A new state record of @i, in memory and in the backups. It differs from the one before by its attempts or its steps:
 * the servers may have different ones of them, and the later one says which recipients have the message. */
static int deliver_set_state(struct queue *q, struct item *i, struct content *state)
{
	size_t len;
	uint8_t *sealed;

	if (state->attempts == i->attempts)
		state->steps = i->steps < UINT16_MAX ? i->steps + 1 : i->steps;
	sealed = content_seal(q->shared.seal, ITEM_STATE, i->id, state, &len);
	if (!sealed)
		return CSSL_E_NO_MEMORY;
	item_set_note(&q->items, i, sealed, len);
	i->attempts = state->attempts;
	i->steps = state->steps;
	i->due_ms = state->at_ms;
	q->alone += !queue_counting(q);
	stock_push(q, CHANGE_REPLACE, i, false);
	return 0;
}

/* The state of a message that is taken: behind one more attempt, or within it. */
static int deliver_note_attempt(
	struct queue *q, struct item *i, unsigned more, int64_t due_ms, struct content_bytes note)
{
	struct content state = { .at_ms = due_ms, .rest = note };

	i->past = ITEM_PAST_CLEAR;
	state.attempts = (uint16_t)(i->attempts < UINT16_MAX ? i->attempts + more : i->attempts);
	return deliver_set_state(q, i, &state);
}

int queue_retry(struct queue *q, uint64_t id, enum queue_step step, int64_t due_ms, struct content_bytes note)
{
	struct item *i = deliver_find(q, id, 1u << ITEM_TAKEN);
	int r;

	if (!i)
		return QUEUE_NONE;
	r = deliver_note_attempt(q, i, step != QUEUE_STEP_PART, step == QUEUE_STEP_BEGIN ? i->due_ms : due_ms, note);
	if (step != QUEUE_STEP_BEGIN)
		destination_settle(&q->destinations, i, queue_now_ms(q));
	return r;
}

int queue_put_back(struct queue *q, uint64_t id, int64_t due_ms, enum queue_past past)
{
	struct item *i = deliver_find(q, id, 1u << ITEM_TAKEN);

	if (!i)
		return QUEUE_NONE;
	if (past == QUEUE_IN_DOUBT)
		i->past = ITEM_PAST_IN_DOUBT;
	i->due_ms = due_ms;
	destination_settle(&q->destinations, i, queue_now_ms(q));
	return 0;
}

/* A bounce in progress: when its notice is stored, the message goes. */
struct bounce {
	struct queue_receipt receipt;
	struct queue *q;
	uint64_t id;
};

static void bounce_on_stored(struct queue_receipt *r, enum queue_outcome outcome)
{
	struct bounce *b = (struct bounce *)r;
	struct item *i = deliver_find(b->q, b->id, 1u << ITEM_TAKEN);

	if (i && outcome == QUEUE_STORED)
		stock_remove(b->q, i);
	else if (outcome == QUEUE_REFUSED) /* there is no room for the notice: the message fails again then */
		queue_put_back(b->q, b->id, queue_now_ms(b->q) + NOTICE_LATER_MS, QUEUE_CLEAR);
	free(b);
}

int queue_bounce(struct queue *q, uint64_t id, const struct queue_mail *notice, struct content_bytes note)
{
	struct item *i = deliver_find(q, id, 1u << ITEM_TAKEN);
	struct queue_mail m;
	struct bounce *b;
	int r;

	if (!i)
		return QUEUE_NONE;
	if (!notice) {
		stock_remove(q, i);
		return 0;
	}
	m = *notice;
	b = malloc(sizeof *b);
	if (!b)
		return CSSL_E_NO_MEMORY;
	*b = (struct bounce){ .receipt = { .on_stored = bounce_on_stored }, .q = q, .id = id };
	r = deliver_note_attempt(q, i, 1, queue_now_ms(q) + NOTICE_LATER_MS, note);
	m.turn = QUEUE_TURN_INSTEAD;
	r = r ? r : queue_add(q, &m, &b->receipt);
	if (r)
		free(b);
	return r;
}

/* The state record of @i as it is, but held or not. */
static int deliver_set_held(struct queue *q, struct item *i, unsigned held)
{
	struct queue_taken t = { 0 };
	struct content state = { .attempts = i->attempts, .at_ms = i->due_ms, .stops = held };
	int r = deliver_read(q, i, &t);

	if (r)
		return r;
	state.rest = t.note;
	r = deliver_set_state(q, i, &state);
	queue_taken_free(&t);
	return r;
}

/* A bit for each state in which it is allowed. */
static const unsigned deliver_acts_in[] = {
	[QUEUE_ACT_RETRY] = 1u << ITEM_DEFERRED,
	[QUEUE_ACT_HOLD] = 1u << ITEM_READY | 1u << ITEM_DEFERRED,
	[QUEUE_ACT_RELEASE] = 1u << ITEM_HELD,
	[QUEUE_ACT_DELETE] = 1u << ITEM_READY | 1u << ITEM_DEFERRED | 1u << ITEM_HELD,
};

int queue_act(struct queue *q, uint64_t id, enum queue_act act)
{
	struct item *i = deliver_find(q, id, deliver_acts_in[act]);
	int r = 0;

	if (!i)
		return QUEUE_NONE;
	if (act == QUEUE_ACT_RETRY || act == QUEUE_ACT_RELEASE)
		i->due_ms = 0;
	if (act == QUEUE_ACT_HOLD || act == QUEUE_ACT_RELEASE)
		r = deliver_set_held(q, i, act == QUEUE_ACT_HOLD);
	if (r)
		return r; /* the message stays where it was: the backups would say otherwise after a restart */
	switch (act) {
	case QUEUE_ACT_RETRY: destination_settle(&q->destinations, i, queue_now_ms(q)); break;
	case QUEUE_ACT_HOLD: destination_hold(&q->destinations, i); break;
	case QUEUE_ACT_RELEASE: destination_append(i->to, i); break;
	case QUEUE_ACT_DELETE: stock_remove(q, i); break;
	}
	return 0;
}

const struct item *queue_look(const struct queue *q, uint64_t id, struct queue_taken *out)
{
	const struct item *i = item_find(&q->items, id);

	if (out)
		memset(out, 0, sizeof *out);
	if (!i || i->kind != ITEM_MESSAGE)
		return NULL;
	if (out && !deliver_read(q, i, out)) {
		out->id = i->id;
		out->attempts = i->attempts;
	}
	return i;
}
