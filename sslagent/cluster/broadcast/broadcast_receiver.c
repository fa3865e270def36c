/* broadcast_receiver.c: a datagram passes key, window and seal (heard_keys.h); its messages pass proof, number and age.
 */
#include "sslagent/cluster/broadcast/broadcast_receiver.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "proto/error.h"
#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "sslagent/cluster/broadcast/questions.h"
#include "sslagent/counters.h"

#define PROBED_EVERY_MS 5 /* so often a sender asks for a proof */

/* Complete numbers, from a snapshot, of a process that was not met yet. */
struct complete_before {
	uint64_t boot_id;
	uint64_t complete[SENDER_THREADS_MAX];
};

struct sender {
	struct sender_keys keys;
	uint64_t previous_boot_id;
	struct heard_numbers *numbers;  /* of its threads; NULL: never met */
	struct complete_before *before; /* NULL: no snapshot named it */
	struct peer_clock clock;
	int64_t heard_ms;
	int64_t probed_ms; /* by the sender; NEVER: not yet */
	struct questions questions;
};

struct broadcast_receiver {
	struct broadcast_receiver_ops ops;
	void *ctx;
	unsigned sender_count;
	_Atomic int64_t due_ms; /* nothing is due before; changes under the lock */
	pthread_mutex_t lock;   /* of what follows */
	struct table keys;      /* of all senders */
	enum receiver_repair repair;
	struct sender senders[];
};

static void receiver_lock(const struct broadcast_receiver *r)
{
	pthread_mutex_lock(&((struct broadcast_receiver *)r)->lock);
}

static void receiver_unlock(const struct broadcast_receiver *r)
{
	pthread_mutex_unlock(&((struct broadcast_receiver *)r)->lock);
}

struct broadcast_receiver *broadcast_receiver_create(
	unsigned senders, const struct broadcast_receiver_ops *ops, void *ctx)
{
	struct broadcast_receiver *r = calloc(1, sizeof *r + senders * sizeof(struct sender));

	if (!r)
		return NULL;
	r->ops = *ops;
	r->ctx = ctx;
	r->repair = REPAIR_ON;
	r->due_ms = INT64_MAX;
	r->sender_count = senders;
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

static void sender_forget(struct broadcast_receiver *r, struct sender *s)
{
	heard_keys_forget(&r->keys, &s->keys);
	for (unsigned worker = 0; s->numbers && worker <= s->keys.workers; worker++)
		free(s->numbers[worker].missing);
	free(s->numbers);
	s->numbers = NULL;
}

void broadcast_receiver_destroy(struct broadcast_receiver *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < r->sender_count; i++) {
		sender_forget(r, &r->senders[i]);
		free(r->senders[i].before);
	}
	table_clear(&r->keys);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* When is the receiver's next tick? At the earliest time that anybody names. */
static void receiver_due(struct broadcast_receiver *r, int64_t at_ms)
{
	if (at_ms < r->due_ms)
		r->due_ms = at_ms;
}

static bool sender_is_proven(const struct sender *s, const struct heard_key *k)
{
	return k->state == KEY_PROVEN && s->clock.state == PEER_CLOCK_KNOWN;
}

static enum sender_belief sender_belief(const struct sender *s)
{
	if (s->keys.count == 0)
		return BELIEF_NO_KEY;
	return sender_is_proven(s, s->keys.held[s->keys.in_use]) ? BELIEF_PROVEN : BELIEF_UNPROVEN;
}

static void sender_note_complete(struct sender *s, unsigned worker, uint64_t complete)
{
	if (worker <= s->keys.workers && complete != UINT64_MAX)
		heard_numbers_give_up(&s->numbers[worker], complete + 1);
}

/* A snapshot came before the first link with this sender. Use its numbers now, unless they are of another process. */
static void sender_take_before(struct sender *s, struct complete_before *before)
{
	bool same = before && before->boot_id == s->keys.boot_id;

	for (unsigned worker = 0; same && worker <= s->keys.workers; worker++)
		sender_note_complete(s, worker, before->complete[worker]);
	free(before);
}

static void sender_note_before(struct sender *s, uint64_t boot_id, unsigned worker, uint64_t complete)
{
	if (!s->before)
		s->before = calloc(1, sizeof *s->before);
	if (!s->before || worker >= SENDER_THREADS_MAX)
		return; /* then this agent asks again: that costs only work */
	if (s->before->boot_id != boot_id)
		*s->before = (struct complete_before){ .boot_id = boot_id };
	if (complete > s->before->complete[worker])
		s->before->complete[worker] = complete;
}

static int sender_meet(struct broadcast_receiver *r, struct sender *s, const struct sender_keys *process)
{
	struct complete_before *before = s->before;
	struct heard_numbers *numbers = calloc(process->workers + 1, sizeof *numbers);

	if (!numbers)
		return CSSL_E_NO_MEMORY;
	sender_forget(r, s);
	*s = (struct sender){ .keys = *process,
		.previous_boot_id = s->keys.boot_id,
		.numbers = numbers,
		.heard_ms = NEVER,
		.probed_ms = NEVER,
		.questions = QUESTIONS_NONE };
	sender_take_before(s, before);
	return 0;
}

int broadcast_receiver_meet(struct broadcast_receiver *r, unsigned sender, uint64_t boot_id, unsigned workers)
{
	const struct sender_keys process = { .sender = sender, .workers = workers, .boot_id = boot_id };
	struct sender *s = &r->senders[sender];
	int result = 0;

	receiver_lock(r);
	if (!s->numbers || s->keys.boot_id != boot_id || s->keys.workers != workers)
		result = sender_meet(r, s, &process);
	receiver_unlock(r);
	return result;
}

int broadcast_receiver_add_key(
	struct broadcast_receiver *r, unsigned sender, const struct given_key *key, int64_t now_ms)
{
	struct sender *s = &r->senders[sender];

	receiver_lock(r);
	int result = s->numbers ? heard_keys_add(&r->keys, &s->keys, key) : CSSL_E_STATE;
	if (!result)
		receiver_due(r, questions_probe(&s->questions, sender_belief(s), now_ms));
	receiver_unlock(r);
	return result == KEY_KNOWN ? 0 : result;
}

static void sender_numbers_exist(
	struct broadcast_receiver *r, struct sender *s, unsigned worker, uint64_t highest, int64_t now_ms)
{
	uint64_t fresh = heard_numbers_extend(&s->numbers[worker], highest);

	if (fresh == 0)
		return;
	count_by(COUNT_OBJECTS_MISSED, fresh);
	receiver_due(r, questions_ask_soon(&s->questions, now_ms));
}

/* A proof of this receiver's own challenge. Only an answer that is younger than the challenge, and whole, shows that
 * the datagram is no recorded one (law 11). */
static void receiver_take_proof(struct broadcast_receiver *r, const struct heard_datagram *from,
	const Cssl__BroadcastMessage *m, int64_t now_ms)
{
	struct sender *s = &r->senders[from->key->of->sender];
	struct questions *q = &s->questions;
	struct heard_key *k = from->key;
	const Cssl__Proof *p = m->proof;

	if (q->challenge_ms == NEVER || now_ms - q->challenge_ms > CHALLENGE_LIFE_MS ||
		sodium_memcmp(p->challenge.data, q->challenge, CHALLENGE_LEN) != 0)
		return;
	if (p->n_counter != s->keys.workers + 1) {
		count(COUNT_MESSAGES_BAD);
		return;
	}
	count(COUNT_PROOFS_TAKEN);
	if (k->state == KEY_UNPROVEN) {
		heard_key_prove(k, p->counter);
		replay_window_commit(&k->windows[from->worker], from->counter); /* the counter of the proof itself */
	}
	peer_clock_answered(&s->clock, questions_proven(q, now_ms), m->made_ms, now_ms);
	s->heard_ms = now_ms;
	for (unsigned worker = 0; worker <= s->keys.workers; worker++)
		sender_numbers_exist(r, s, worker, p->highest[worker], now_ms);
}

/* Anybody may send an old question again and again. */
static void receiver_take_probe(struct broadcast_receiver *r, unsigned sender, const uint8_t *challenge, int64_t now_ms)
{
	struct sender *s = &r->senders[sender];

	if (s->probed_ms != NEVER && now_ms - s->probed_ms < PROBED_EVERY_MS)
		return;
	s->probed_ms = now_ms;
	r->ops.on_probe(r->ctx, sender, challenge);
}

static bool receiver_is_object(const Cssl__BroadcastMessage *m)
{
	return m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ ||
	       m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_ADOPTED ||
	       m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_GONE ||
	       m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_TOO_LARGE;
}

static void receiver_hand_on(
	struct broadcast_receiver *r, unsigned sender, const Cssl__BroadcastMessage *m, int64_t now_ms)
{
	const struct peer_clock *clock = &r->senders[sender].clock;
	struct heard_times times = {
		.made_ms = peer_clock_local(clock, m->made_ms, now_ms),
		.family_made_ms = peer_clock_local(clock, m->family_made_ms, now_ms),
		.now_ms = now_ms,
	};

	r->ops.on_message(r->ctx, sender, m, &times);
}

static void receiver_take_object(
	struct broadcast_receiver *r, unsigned sender, unsigned worker, const Cssl__BroadcastMessage *m, int64_t now_ms)
{
	struct sender *s = &r->senders[sender];
	struct heard_numbers *numbers = &s->numbers[worker];
	uint64_t missed = 0, highest = numbers->highest;

	if (heard_numbers_take(numbers, m->number, &missed) == HEARD_BEFORE) {
		count(COUNT_OBJECTS_DUPLICATE);
		return;
	}
	count(COUNT_OBJECTS_RECEIVED);
	count_by(COUNT_OBJECTS_MISSED, missed);
	if (missed > 0 || m->number <= highest)
		receiver_due(r, questions_ask_soon(&s->questions, now_ms));
	if (receiver_is_object(m))
		receiver_hand_on(r, sender, m, now_ms);
	else
		count(COUNT_MESSAGES_BAD); /* count it as heard, or this agent would ask for it again and again */
}

static void receiver_take_heartbeat(
	struct broadcast_receiver *r, unsigned sender, const Cssl__BroadcastMessage *m, int64_t now_ms)
{
	struct sender *s = &r->senders[sender];
	const Cssl__Heartbeat *h = m->heartbeat;

	if (h->n_highest != s->keys.workers + 1) {
		count(COUNT_MESSAGES_BAD);
		return;
	}
	for (unsigned worker = 0; worker <= s->keys.workers; worker++)
		sender_numbers_exist(r, s, worker, h->highest[worker], now_ms);
	receiver_hand_on(r, sender, m, now_ms);
}

static void receiver_take_forgotten(struct broadcast_receiver *r, unsigned sender, const Cssl__Forgotten *f)
{
	struct sender *s = &r->senders[sender];
	uint64_t given_up;

	if (f->worker > s->keys.workers) {
		count(COUNT_MESSAGES_BAD);
		return;
	}
	given_up = heard_numbers_give_up(&s->numbers[f->worker], f->below);
	count_by(COUNT_OBJECTS_FORGOTTEN, given_up);
	if (given_up > 0)
		r->ops.on_forgotten(r->ctx, sender);
}

/* What is old was held back on its way, and tells nothing of now. Only an object may be as old as it likes. */
static void receiver_take_unnumbered(struct broadcast_receiver *r, const struct heard_datagram *from,
	const Cssl__BroadcastMessage *m, int64_t now_ms)
{
	const unsigned sender = from->key->of->sender;
	struct sender *s = &r->senders[sender];

	if (m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ) { /* an answer; its times are the object's own */
		receiver_hand_on(r, sender, m, now_ms);
		return;
	}
	if (now_ms - peer_clock_local(&s->clock, m->made_ms, now_ms) > STALE_MS) {
		count(COUNT_MESSAGES_STALE);
		return;
	}
	s->heard_ms = now_ms;
	switch (m->what_case) {
	case CSSL__BROADCAST_MESSAGE__WHAT_PROBE: receiver_take_probe(r, sender, m->probe.data, now_ms); break;
	case CSSL__BROADCAST_MESSAGE__WHAT_PROOF: receiver_take_proof(r, from, m, now_ms); break;
	case CSSL__BROADCAST_MESSAGE__WHAT_HEARTBEAT: receiver_take_heartbeat(r, sender, m, now_ms); break;
	case CSSL__BROADCAST_MESSAGE__WHAT_FORGOTTEN: receiver_take_forgotten(r, sender, m->forgotten); break;
	case CSSL__BROADCAST_MESSAGE__WHAT_ADOPTED:
	case CSSL__BROADCAST_MESSAGE__WHAT_GONE: count(COUNT_MESSAGES_BAD); break; /* always numbered */
	default: receiver_hand_on(r, sender, m, now_ms); break;
	}
}

/* From a sender without a proof only questions and proofs are accepted. */
static void receiver_take_message(struct broadcast_receiver *r, const struct heard_datagram *from,
	const Cssl__BroadcastMessage *m, int64_t now_ms)
{
	const unsigned sender = from->key->of->sender;

	if (sender_is_proven(&r->senders[sender], from->key) && m->number > 0)
		receiver_take_object(r, sender, from->worker, m, now_ms);
	else if (sender_is_proven(&r->senders[sender], from->key))
		receiver_take_unnumbered(r, from, m, now_ms);
	else if (m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_PROBE)
		receiver_take_probe(r, sender, m->probe.data, now_ms);
	else if (m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_PROOF)
		receiver_take_proof(r, from, m, now_ms);
	else
		count(COUNT_MESSAGES_UNPROVEN);
}

static void receiver_take_payload(struct broadcast_receiver *r, const struct heard_datagram *from,
	const uint8_t *payload, size_t len, int64_t now_ms)
{
	struct wire_reader in = wire_reader(payload, len);
	const Cssl__BroadcastMessage *m;
	struct scratch scratch;

	while (wire_left(&in) > 0) {
		scratch_open(&scratch, SCRATCH_INSIDE); /* cannot fail: it is on the stack */
		if (broadcast_message_next(&in, &scratch, &m) == 0)
			receiver_take_message(r, from, m, now_ms);
		else
			count(COUNT_MESSAGES_BAD);
		scratch_close(&scratch);
	}
}

/* No key has that id. The sender is an earlier process of a known agent, or unknown. */
static enum agent_counter receiver_stranger(const struct broadcast_receiver *r, uint64_t boot_id)
{
	for (unsigned i = 0; i < r->sender_count; i++)
		if (r->senders[i].previous_boot_id == boot_id && boot_id != 0)
			return COUNT_DATAGRAMS_OLD_BOOT;
	return COUNT_DATAGRAMS_KEY_UNKNOWN;
}

void broadcast_receiver_input(struct broadcast_receiver *r, const uint8_t *datagram, size_t len, int64_t now_ms)
{
	uint8_t payload[DATAGRAM_PAYLOAD_MAX];
	struct heard_datagram from;

	receiver_lock(r);
	ptrdiff_t payload_len = heard_keys_open(&r->keys, datagram, len, &from, payload);
	if (payload_len == -COUNT_DATAGRAMS_KEY_UNKNOWN) {
		count(receiver_stranger(r, from.boot_id));
	} else if (payload_len < 0) {
		count((enum agent_counter) - payload_len);
	} else {
		count(COUNT_DATAGRAMS_RECEIVED);
		receiver_take_payload(r, &from, payload, (size_t)payload_len, now_ms);
		OPENSSL_cleanse(payload, (size_t)payload_len);
	}
	receiver_unlock(r);
}

static void sender_tick(struct broadcast_receiver *r, struct sender *s, int64_t now_ms)
{
	const struct questioned of = { .sender = s->keys.sender,
		.workers = s->keys.workers,
		.belief = sender_belief(s),
		.heard_ms = s->heard_ms,
		.numbers = r->repair == REPAIR_HELD ? NULL : s->numbers,
		.say = r->ops.say,
		.ctx = r->ctx };

	if (s->numbers)
		receiver_due(r, questions_tick(&s->questions, &of, now_ms));
}

void broadcast_receiver_tick(struct broadcast_receiver *r, int64_t now_ms)
{
	if (now_ms < r->due_ms)
		return;
	receiver_lock(r);
	r->due_ms = INT64_MAX;
	for (unsigned sender = 0; sender < r->sender_count; sender++)
		sender_tick(r, &r->senders[sender], now_ms);
	receiver_unlock(r);
}

int64_t broadcast_receiver_due_ms(const struct broadcast_receiver *r)
{
	return r->due_ms;
}

void broadcast_receiver_repair(struct broadcast_receiver *r, enum receiver_repair repair)
{
	receiver_lock(r);
	r->repair = repair;
	r->due_ms = NEVER;
	receiver_unlock(r);
}

void broadcast_receiver_complete(
	struct broadcast_receiver *r, unsigned sender, uint64_t boot_id, unsigned worker, uint64_t complete)
{
	struct sender *s = &r->senders[sender];

	receiver_lock(r);
	if (s->numbers && s->keys.boot_id == boot_id)
		sender_note_complete(s, worker, complete);
	else if (complete != UINT64_MAX)
		sender_note_before(s, boot_id, worker, complete);
	receiver_unlock(r);
}

struct receiver_view broadcast_receiver_view(const struct broadcast_receiver *r, unsigned sender)
{
	const struct sender *s = &r->senders[sender];

	receiver_lock(r);
	struct receiver_view v = {
		.boot_id = s->keys.boot_id, .workers = s->keys.workers, .heard_ms = NEVER, .clock = s->clock
	};
	if (s->numbers) {
		v.heard_ms = s->heard_ms;
		v.state = sender_belief(s) == BELIEF_PROVEN ? SENDER_BELIEVED : SENDER_UNPROVEN;
	}
	for (unsigned worker = 0; s->numbers && worker <= s->keys.workers; worker++)
		for (unsigned run = 0; run < s->numbers[worker].missing_count; run++)
			v.missing += s->numbers[worker].missing[run].last - s->numbers[worker].missing[run].first + 1;
	receiver_unlock(r);
	return v;
}

uint64_t broadcast_receiver_heard(const struct broadcast_receiver *r, unsigned sender, unsigned worker)
{
	const struct sender *s = &r->senders[sender];

	receiver_lock(r);
	uint64_t heard = s->numbers && worker <= s->keys.workers ? heard_numbers_complete(&s->numbers[worker]) : 0;
	receiver_unlock(r);
	return heard;
}

void broadcast_receiver_clock_answered(
	struct broadcast_receiver *r, unsigned sender, int64_t asked_ms, int64_t remote_ms, int64_t now_ms)
{
	receiver_lock(r);
	peer_clock_answered(&r->senders[sender].clock, asked_ms, remote_ms, now_ms);
	receiver_unlock(r);
}
