/* broadcast_receiver.c: a datagram passes key, window and seal; its messages pass proof, number and age. */
#include "sslagent/cluster/broadcast_receiver_internal.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/counters.h"

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

static void forget(struct broadcast_receiver *r, struct sender *s)
{
	while (s->key_count > 0)
		heard_keys_remove(&r->keys, s->keys[--s->key_count]);
	for (unsigned worker = 0; s->numbers && worker <= s->workers; worker++)
		heard_numbers_clear(&s->numbers[worker]);
	free(s->numbers);
	s->numbers = NULL;
}

void broadcast_receiver_destroy(struct broadcast_receiver *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < r->sender_count; i++) {
		forget(r, &r->senders[i]);
		free(r->senders[i].before);
	}
	table_clear(&r->keys);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static void note_complete(struct sender *s, unsigned worker, uint64_t complete)
{
	if (worker <= s->workers && complete != UINT64_MAX)
		heard_numbers_give_up(&s->numbers[worker], complete + 1);
}

/* A snapshot came before the first link with this sender. Use its numbers now, unless they are of another process. */
static void take_complete_before(struct sender *s, struct complete_before *before)
{
	bool same = before && before->boot_id == s->boot_id;

	for (unsigned worker = 0; same && worker <= s->workers; worker++)
		note_complete(s, worker, before->complete[worker]);
	free(before);
}

static void note_complete_before(struct sender *s, uint64_t boot_id, unsigned worker, uint64_t complete)
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

static int meet(struct broadcast_receiver *r, struct sender *s, uint64_t boot_id, unsigned workers)
{
	struct heard_numbers *numbers;
	struct complete_before *before = s->before;

	if (s->numbers && s->boot_id == boot_id && s->workers == workers)
		return 0;
	numbers = calloc(workers + 1, sizeof *numbers);
	if (!numbers)
		return CSSL_E_NO_MEMORY;
	forget(r, s);
	*s = (struct sender){
		.boot_id = boot_id, .previous_boot_id = s->boot_id, .workers = workers, .numbers = numbers
	};
	s->heard_ms = s->challenge_ms = s->probed_ms = s->ask_at_ms = NEVER;
	s->clock_asked_ms = -CLOCK_LIFE_MS;
	take_complete_before(s, before);
	return 0;
}

int broadcast_receiver_meet(struct broadcast_receiver *r, unsigned sender, uint64_t boot_id, unsigned workers)
{
	receiver_lock(r);
	int result = meet(r, &r->senders[sender], boot_id, workers);
	receiver_unlock(r);
	return result;
}

bool sender_believes(const struct sender *s, const struct heard_key *k)
{
	return k->state == KEY_PROVEN && s->clock.state == PEER_CLOCK_KNOWN;
}

static int add_key(struct broadcast_receiver *r, unsigned sender, const struct given_key *key, int64_t now_ms)
{
	struct sender *s = &r->senders[sender];
	struct heard_key *k = heard_keys_find(&r->keys, key->id);

	if (!s->numbers || (k && k->sender != sender))
		return CSSL_E_STATE;
	if (k)
		return 0;
	k = heard_keys_add(&r->keys, sender, s->workers, key->id, key->aead, key->secret);
	if (!k)
		return CSSL_E_CRYPTO;
	if (s->key_count == KEYS_HELD) {
		heard_keys_remove(&r->keys, s->keys[0]);
		memmove(s->keys, s->keys + 1, (KEYS_HELD - 1) * sizeof s->keys[0]);
		s->key_in_use -= s->key_in_use > 0;
		s->key_count--;
	}
	s->keys[s->key_count++] = k;
	if (key->use == KEY_NEXT)
		heard_key_prove(k, NULL);
	else
		s->key_in_use = s->key_count - 1;
	questions_probe(r, s, now_ms);
	return 0;
}

int broadcast_receiver_add_key(
	struct broadcast_receiver *r, unsigned sender, const struct given_key *key, int64_t now_ms)
{
	receiver_lock(r);
	int result = add_key(r, sender, key, now_ms);
	receiver_unlock(r);
	return result;
}

static void numbers_exist(
	struct broadcast_receiver *r, struct sender *s, unsigned worker, uint64_t highest, int64_t now_ms)
{
	uint64_t fresh = heard_numbers_extend(&s->numbers[worker], highest);

	if (fresh == 0)
		return;
	count_by(COUNT_OBJECTS_MISSED, fresh);
	questions_ask_soon(r, s, now_ms);
}

/* Where a message came from. */
struct origin {
	unsigned sender, worker;
	struct heard_key *key; /* NULL: a payload given directly */
	uint64_t counter;
};

/* A proof of this receiver's own challenge. */
static void take_proof(
	struct broadcast_receiver *r, const struct origin *from, const Cssl__BroadcastMessage *m, int64_t now_ms)
{
	struct sender *s = &r->senders[from->sender];
	struct heard_key *k = from->key;
	const Cssl__Proof *p = m->proof;

	if (s->challenge_ms == NEVER || now_ms - s->challenge_ms > CHALLENGE_LIFE_MS ||
		sodium_memcmp(p->challenge.data, s->challenge, CHALLENGE_LEN) != 0)
		return;
	if (p->n_counter != s->workers + 1) {
		count(COUNT_MESSAGES_BAD);
		return;
	}
	count(COUNT_PROOFS_TAKEN);
	if (k->state == KEY_UNPROVEN) {
		heard_key_prove(k, p->counter);
		replay_window_commit(&k->windows[from->worker], from->counter); /* the counter of the proof itself */
	}
	peer_clock_answered(&s->clock, s->challenge_ms, m->made_ms, now_ms);
	s->round_trip_ms = now_ms - s->challenge_ms;
	s->clock_asked_ms = s->heard_ms = now_ms;
	questions_proven(s);
	for (unsigned worker = 0; worker <= s->workers; worker++)
		numbers_exist(r, s, worker, p->highest[worker], now_ms);
}

/* Anybody may send an old question again and again. */
static void take_probe(struct broadcast_receiver *r, unsigned sender, const uint8_t *challenge, int64_t now_ms)
{
	struct sender *s = &r->senders[sender];

	if (s->probed_ms != NEVER && now_ms - s->probed_ms < PROBED_EVERY_MS)
		return;
	s->probed_ms = now_ms;
	r->ops.on_probe(r->ctx, sender, challenge);
}

static bool is_object(const Cssl__BroadcastMessage *m)
{
	return m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ ||
	       m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_ADOPTED ||
	       m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_GONE ||
	       m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_TOO_LARGE;
}

static void hand_on(struct broadcast_receiver *r, unsigned sender, const Cssl__BroadcastMessage *m, int64_t now_ms)
{
	const struct peer_clock *clock = &r->senders[sender].clock;
	struct heard_times times = {
		.made_ms = peer_clock_local(clock, m->made_ms, now_ms),
		.family_made_ms = peer_clock_local(clock, m->family_made_ms, now_ms),
		.now_ms = now_ms,
	};

	r->ops.on_message(r->ctx, sender, m, &times);
}

static void take_object(
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
		questions_ask_soon(r, s, now_ms);
	if (is_object(m))
		hand_on(r, sender, m, now_ms);
	else
		count(COUNT_MESSAGES_BAD); /* count it as heard, or this agent would ask for it again and again */
}

static void take_heartbeat(
	struct broadcast_receiver *r, unsigned sender, const Cssl__BroadcastMessage *m, int64_t now_ms)
{
	struct sender *s = &r->senders[sender];
	const Cssl__Heartbeat *h = m->heartbeat;

	if (h->n_highest != s->workers + 1) {
		count(COUNT_MESSAGES_BAD);
		return;
	}
	for (unsigned worker = 0; worker <= s->workers; worker++)
		numbers_exist(r, s, worker, h->highest[worker], now_ms);
	hand_on(r, sender, m, now_ms);
}

static void take_forgotten(struct broadcast_receiver *r, unsigned sender, const Cssl__Forgotten *f)
{
	struct sender *s = &r->senders[sender];
	uint64_t given_up;

	if (f->worker > s->workers) {
		count(COUNT_MESSAGES_BAD);
		return;
	}
	given_up = heard_numbers_give_up(&s->numbers[f->worker], f->below);
	count_by(COUNT_OBJECTS_FORGOTTEN, given_up);
	if (given_up > 0)
		r->ops.on_forgotten(r->ctx, sender);
}

static void take_unnumbered(
	struct broadcast_receiver *r, const struct origin *from, const Cssl__BroadcastMessage *m, int64_t now_ms)
{
	struct sender *s = &r->senders[from->sender];

	if (m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ) { /* an answer; its times are the object's own */
		hand_on(r, from->sender, m, now_ms);
		return;
	}
	if (now_ms - peer_clock_local(&s->clock, m->made_ms, now_ms) > STALE_MS) {
		count(COUNT_MESSAGES_STALE);
		return;
	}
	s->heard_ms = now_ms;
	switch (m->what_case) {
	case CSSL__BROADCAST_MESSAGE__WHAT_PROBE: take_probe(r, from->sender, m->probe.data, now_ms); break;
	case CSSL__BROADCAST_MESSAGE__WHAT_PROOF:
		if (from->key)
			take_proof(r, from, m, now_ms);
		break;
	case CSSL__BROADCAST_MESSAGE__WHAT_HEARTBEAT: take_heartbeat(r, from->sender, m, now_ms); break;
	case CSSL__BROADCAST_MESSAGE__WHAT_FORGOTTEN: take_forgotten(r, from->sender, m->forgotten); break;
	case CSSL__BROADCAST_MESSAGE__WHAT_ADOPTED:
	case CSSL__BROADCAST_MESSAGE__WHAT_GONE: count(COUNT_MESSAGES_BAD); break; /* always numbered */
	default: hand_on(r, from->sender, m, now_ms); break;
	}
}

/* From a sender without a proof only questions and proofs are accepted. */
static void take_unproven(
	struct broadcast_receiver *r, const struct origin *from, const Cssl__BroadcastMessage *m, int64_t now_ms)
{
	if (m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_PROBE)
		take_probe(r, from->sender, m->probe.data, now_ms);
	else if (m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_PROOF)
		take_proof(r, from, m, now_ms);
	else
		count(COUNT_MESSAGES_UNPROVEN);
}

static void take_message(
	struct broadcast_receiver *r, const struct origin *from, const Cssl__BroadcastMessage *m, int64_t now_ms)
{
	if (from->key && !sender_believes(&r->senders[from->sender], from->key))
		take_unproven(r, from, m, now_ms);
	else if (m->number > 0)
		take_object(r, from->sender, from->worker, m, now_ms);
	else
		take_unnumbered(r, from, m, now_ms);
}

static void take_payload(
	struct broadcast_receiver *r, const struct origin *from, const uint8_t *payload, size_t len, int64_t now_ms)
{
	struct wire_reader in = wire_reader(payload, len);
	const Cssl__BroadcastMessage *m;
	struct scratch scratch;

	while (wire_left(&in) > 0) {
		scratch_open(&scratch, SCRATCH_INSIDE); /* cannot fail: it is on the stack */
		if (broadcast_message_next(&in, &scratch, &m) == 0)
			take_message(r, from, m, now_ms);
		else
			count(COUNT_MESSAGES_BAD);
		scratch_close(&scratch);
	}
}

void broadcast_receiver_payload(struct broadcast_receiver *r, unsigned sender, unsigned worker, const uint8_t *payload,
	size_t len, int64_t now_ms)
{
	struct origin from = { .sender = sender, .worker = worker };

	receiver_lock(r);
	assert(r->senders[sender].numbers && worker <= r->senders[sender].workers);
	assert(r->senders[sender].clock.state == PEER_CLOCK_KNOWN);
	take_payload(r, &from, payload, len, now_ms);
	receiver_unlock(r);
}

/* No key has that id. The sender is an earlier process of a known agent, or unknown. */
static enum agent_counter stranger(const struct broadcast_receiver *r, uint64_t boot_id)
{
	for (unsigned i = 0; i < r->sender_count; i++)
		if (r->senders[i].previous_boot_id == boot_id && boot_id != 0)
			return COUNT_DATAGRAMS_OLD_BOOT;
	return COUNT_DATAGRAMS_KEY_UNKNOWN;
}

static void in_use(struct sender *s, const struct heard_key *k)
{
	for (unsigned i = s->key_in_use + 1; i < s->key_count; i++)
		if (s->keys[i] == k)
			s->key_in_use = i;
}

/* Open the datagram into @payload. Returns the length, or the negated counter of the failure. */
static ptrdiff_t open_datagram(struct broadcast_receiver *r, const uint8_t *datagram, size_t len, struct origin *from,
	uint8_t payload[static DATAGRAM_PAYLOAD_MAX])
{
	struct replay_window *window;
	struct datagram_header h;
	ptrdiff_t payload_len;
	struct heard_key *k;

	if (datagram_peek(datagram, len, &h) != 0)
		return -COUNT_DATAGRAMS_MALFORMED;
	k = heard_keys_find(&r->keys, h.key_id);
	if (!k)
		return -(ptrdiff_t)stranger(r, h.boot_id);
	if (h.boot_id != r->senders[k->sender].boot_id)
		return -COUNT_DATAGRAMS_OLD_BOOT;
	if (h.worker > k->workers)
		return -COUNT_DATAGRAMS_MALFORMED;
	window = &k->windows[h.worker];
	if (k->state == KEY_PROVEN && replay_window_check(window, h.counter) != 0)
		return -COUNT_DATAGRAMS_REPLAYED;
	payload_len = datagram_open(k->key, datagram, len, payload, DATAGRAM_PAYLOAD_MAX);
	if (payload_len < 0)
		return payload_len == CSSL_E_AUTH ? -COUNT_DATAGRAMS_FORGED : -COUNT_DATAGRAMS_MALFORMED;
	if (k->state == KEY_PROVEN)
		replay_window_commit(window, h.counter);
	*from = (struct origin){ k->sender, h.worker, k, h.counter };
	return payload_len;
}

void broadcast_receiver_input(struct broadcast_receiver *r, const uint8_t *datagram, size_t len, int64_t now_ms)
{
	uint8_t payload[DATAGRAM_PAYLOAD_MAX];
	struct origin from;

	receiver_lock(r);
	ptrdiff_t payload_len = open_datagram(r, datagram, len, &from, payload);
	if (payload_len < 0) {
		count((enum agent_counter) - payload_len);
	} else {
		count(COUNT_DATAGRAMS_RECEIVED);
		in_use(&r->senders[from.sender], from.key);
		take_payload(r, &from, payload, (size_t)payload_len, now_ms);
		OPENSSL_cleanse(payload, (size_t)payload_len);
	}
	receiver_unlock(r);
}

void broadcast_receiver_complete(
	struct broadcast_receiver *r, unsigned sender, uint64_t boot_id, unsigned worker, uint64_t complete)
{
	struct sender *s = &r->senders[sender];

	receiver_lock(r);
	if (s->numbers && s->boot_id == boot_id)
		note_complete(s, worker, complete);
	else if (complete != UINT64_MAX)
		note_complete_before(s, boot_id, worker, complete);
	receiver_unlock(r);
}

static struct receiver_view view_of(const struct sender *s)
{
	struct receiver_view v = { .boot_id = s->boot_id, .workers = s->workers, .heard_ms = NEVER, .clock = s->clock };

	if (!s->numbers)
		return v;
	v.heard_ms = s->heard_ms;
	v.state = s->key_count > 0 && sender_believes(s, s->keys[s->key_in_use]) ? SENDER_BELIEVED : SENDER_UNPROVEN;
	for (unsigned worker = 0; worker <= s->workers; worker++)
		for (unsigned run = 0; run < s->numbers[worker].missing_count; run++)
			v.missing += s->numbers[worker].missing[run].last - s->numbers[worker].missing[run].first + 1;
	return v;
}

struct receiver_view broadcast_receiver_view(const struct broadcast_receiver *r, unsigned sender)
{
	receiver_lock(r);
	struct receiver_view v = view_of(&r->senders[sender]);
	receiver_unlock(r);
	return v;
}

uint64_t broadcast_receiver_heard(const struct broadcast_receiver *r, unsigned sender, unsigned worker)
{
	const struct sender *s = &r->senders[sender];

	receiver_lock(r);
	uint64_t heard = s->numbers && worker <= s->workers ? heard_numbers_complete(&s->numbers[worker]) : 0;
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
