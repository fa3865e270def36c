/* broadcast_sender.c: it fills one datagram for each stream, and one of words, for all agents or for one. It packs a
 * numbered message once for each stream, into its place in the ring, and copies it from there. */
#include "sslagent/cluster/broadcast/broadcast_sender.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/secret.h"
#include "proto/datagram.h"
#include "proto/error.h"
#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "sslagent/cluster/broadcast/sending_keys.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/object_memory.h"

#define REPEAT_MAX 1024u /* numbers repeated for one question */

/* One load reads key and counter together. */
#define COUNTER_BITS 44u
#define COUNTER_MASK ((UINT64_C(1) << COUNTER_BITS) - 1)

struct filling {
	enum datagram_of what;
	int to;
	size_t len;
	uint8_t payload[DATAGRAM_PAYLOAD_MAX];
};

struct kept {
	uint8_t *message; /* framed; NULL: there was no memory to keep it */
	size_t len;
};

/* Numbers without gaps, for all agents or for one. */
struct stream {
	uint64_t number; /* last used */
	_Atomic uint64_t highest;
	struct kept *ring;
	struct filling filling;
	struct stream *next_filled;
};

struct broadcast_sender {
	struct broadcast_sender_conf conf;
	struct datagram_key *key;
	uint32_t generation;
	uint64_t counter;        /* last used */
	_Atomic uint64_t sealed; /* generation << COUNTER_BITS | next counter */
	struct object_memory *memory;
	struct stream *filled; /* streams whose datagram waits for the flush */
	struct filling words;
	unsigned stream_count;
	struct stream streams[];
};

static int stream_init(struct stream *stream, const struct broadcast_sender_conf *conf, int to)
{
	stream->filling.what = DATAGRAM_OF_OBJECTS;
	stream->filling.to = to;
	stream->ring = calloc(conf->ring, sizeof(struct kept));
	return stream->ring ? 0 : CSSL_E_NO_MEMORY;
}

static size_t sender_len(unsigned stream_count)
{
	return sizeof(struct broadcast_sender) + stream_count * sizeof(struct stream);
}

/* Unsent datagrams hold keys in clear, so the whole sender is in locked memory. */
struct broadcast_sender *broadcast_sender_create(const struct broadcast_sender_conf *conf)
{
	unsigned stream_count = conf->streams > 0 ? conf->streams : 1;
	struct broadcast_sender *s = secret_alloc(sender_len(stream_count));
	int r = 0;

	if (!s)
		return NULL;
	assert(conf->ring > 0);
	s->conf = *conf;
	s->stream_count = stream_count;
	s->words.what = DATAGRAM_OF_WORDS;
	s->memory = object_memory_create();
	for (unsigned i = 0; !r && i < stream_count; i++)
		r = stream_init(&s->streams[i], conf, conf->streams > 0 ? (int)i : BROADCAST_ALL);
	if (!s->memory || r) {
		broadcast_sender_destroy(s);
		return NULL;
	}
	broadcast_sender_renew_key(s);
	return s;
}

static void stream_free(struct broadcast_sender *s, struct stream *stream)
{
	for (unsigned i = 0; stream->ring && i < s->conf.ring; i++)
		object_free(s->memory, stream->ring[i].message, stream->ring[i].len);
	free(stream->ring);
}

void broadcast_sender_destroy(struct broadcast_sender *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->stream_count; i++)
		stream_free(s, &s->streams[i]);
	object_memory_destroy(s->memory);
	datagram_key_destroy(s->key);
	secret_free(s, sender_len(s->stream_count));
}

/* The stream that agent @to hears. */
static const struct stream *sender_stream(const struct broadcast_sender *s, int to)
{
	return &s->streams[s->conf.streams > 0 ? to : 0];
}

static void sender_mark(struct broadcast_sender *s)
{
	uint64_t next = s->counter + 1;

	atomic_store_explicit(
		&s->sealed, (uint64_t)s->generation << COUNTER_BITS | (next & COUNTER_MASK), memory_order_release);
}

struct broadcast_mark broadcast_sender_mark(const struct broadcast_sender *s, int to, uint32_t key_generation)
{
	uint64_t sealed = atomic_load_explicit(&s->sealed, memory_order_acquire);
	struct broadcast_mark m = { 0, atomic_load_explicit(&sender_stream(s, to)->highest, memory_order_acquire) };

	if (sealed >> COUNTER_BITS == key_generation)
		m.next_counter = sealed & COUNTER_MASK;
	else if (sealed >> COUNTER_BITS > key_generation)
		m.next_counter = DATAGRAM_COUNTER_MAX + 1;
	return m;
}

static void filling_seal(struct broadcast_sender *s, struct filling *f)
{
	struct datagram_header header = { .worker = s->conf.worker, .boot_id = s->conf.boot_id };
	uint8_t datagram[DATAGRAM_MAX];
	ptrdiff_t len;

	if (f->len == 0)
		return;
	if (s->key) {
		header.key_id = datagram_key_id(s->key);
		header.counter = ++s->counter;
		sender_mark(s); /* before the datagram leaves: a proof never names a counter that was used */
		len = datagram_seal(s->key, &header, f->payload, f->len, datagram, sizeof datagram);
		if (len > 0) {
			count(COUNT_DATAGRAMS_SEALED);
			s->conf.emit(s->conf.ctx, f->what, f->to, datagram, (size_t)len);
		}
	}
	OPENSSL_cleanse(f->payload, f->len);
	f->len = 0;
}

void broadcast_sender_flush(struct broadcast_sender *s)
{
	while (s->filled) {
		struct stream *stream = s->filled;

		s->filled = stream->next_filled;
		filling_seal(s, &stream->filling);
	}
	filling_seal(s, &s->words);
}

/* Counters begin again here, so it has to be another key: one key seals under each counter once (law 1). */
static void sender_use_key(struct broadcast_sender *s, const struct sending_key *key)
{
	struct datagram_key *fresh = datagram_key_create(key->id, key->aead, key->secret);

	if (!fresh)
		return;
	assert(key->generation > s->generation && key->generation < 1u << (64 - COUNTER_BITS));
	broadcast_sender_flush(s);
	datagram_key_destroy(s->key);
	s->key = fresh;
	s->generation = key->generation;
	s->counter = 0;
	sender_mark(s);
}

uint32_t broadcast_sender_renew_key(struct broadcast_sender *s)
{
	struct sending_key keys[2];

	if (s->generation == sending_keys_generation(s->conf.keys))
		return s->generation;
	sending_keys_list(s->conf.keys, keys);
	if (keys[0].generation != s->generation)
		sender_use_key(s, &keys[0]);
	OPENSSL_cleanse(keys, sizeof keys);
	return s->generation;
}

/* Room for @len more bytes. */
static uint8_t *filling_room(struct broadcast_sender *s, struct filling *f, size_t len)
{
	if (f->len + len > sizeof f->payload)
		filling_seal(s, f);
	if (f->len == 0 && s->conf.on_waiting)
		s->conf.on_waiting(s->conf.ctx);
	f->len += len;
	return f->payload + f->len - len;
}

static uint8_t *sender_room_for_object(struct broadcast_sender *s, struct stream *stream, size_t len)
{
	if (stream->filling.len == 0) {
		stream->next_filled = s->filled;
		s->filled = stream;
	}
	return filling_room(s, &stream->filling, len);
}

static uint8_t *sender_room_for_words(struct broadcast_sender *s, int to, size_t len)
{
	if (s->words.to != to)
		filling_seal(s, &s->words);
	s->words.to = to;
	return filling_room(s, &s->words, len);
}

static size_t message_len(const Cssl__BroadcastMessage *m)
{
	return BROADCAST_MESSAGE_FRAME_LEN + cssl__broadcast_message__get_packed_size(m);
}

static void message_write(const Cssl__BroadcastMessage *m, uint8_t *out)
{
	wire_store_u16(out, (uint16_t)cssl__broadcast_message__pack(m, out + BROADCAST_MESSAGE_FRAME_LEN));
}

static void stream_keep(struct broadcast_sender *s, struct stream *stream, const Cssl__BroadcastMessage *m, size_t len)
{
	struct kept *k = &stream->ring[m->number % s->conf.ring];

	object_free(s->memory, k->message, k->len);
	k->len = len;
	k->message = object_alloc(s->memory, len);
	if (k->message)
		message_write(m, k->message);
}

static int stream_number(struct broadcast_sender *s, struct stream *stream, Cssl__BroadcastMessage *m)
{
	const struct kept *k;
	uint8_t *to;
	size_t len;

	m->number = stream->number + 1;
	len = message_len(m);
	if (len > DATAGRAM_PAYLOAD_MAX) {
		m->number = 0;
		return CSSL_E_TOO_LONG;
	}
	stream->number = m->number;
	stream_keep(s, stream, m, len);
	k = &stream->ring[m->number % s->conf.ring];
	to = sender_room_for_object(s, stream, len);
	if (k->message)
		memcpy(to, k->message, len);
	else
		message_write(m, to);
	atomic_store_explicit(&stream->highest, stream->number, memory_order_release);
	count(COUNT_OBJECTS_SENT);
	return 0;
}

int broadcast_sender_number(struct broadcast_sender *s, int to, Cssl__BroadcastMessage *m)
{
	int r = 0;

	assert(to == BROADCAST_ALL || (to >= 0 && (unsigned)to < s->conf.streams));
	broadcast_sender_renew_key(s);
	if (to != BROADCAST_ALL || s->conf.streams == 0)
		return stream_number(s, &s->streams[to == BROADCAST_ALL ? 0 : to], m);
	for (unsigned i = 0; !r && i < s->stream_count; i++)
		if (i != s->conf.self)
			r = stream_number(s, &s->streams[i], m);
	return r;
}

int broadcast_sender_say(struct broadcast_sender *s, int to, const Cssl__BroadcastMessage *m)
{
	size_t len = message_len(m);

	if (len > DATAGRAM_PAYLOAD_MAX)
		return CSSL_E_TOO_LONG;
	broadcast_sender_renew_key(s);
	message_write(m, sender_room_for_words(s, to, len));
	return 0;
}

static void sender_say_forgotten(struct broadcast_sender *s, int to, uint64_t below, int64_t now_ms)
{
	Cssl__Forgotten forgotten = { MESSAGE(forgotten), .worker = s->conf.worker, .below = below };
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .made_ms = now_ms,
		.what_case = CSSL__BROADCAST_MESSAGE__WHAT_FORGOTTEN, .forgotten = &forgotten };

	broadcast_sender_say(s, to, &m);
}

/* The first number that is still in the ring. */
static uint64_t stream_oldest_kept(
	const struct broadcast_sender *s, const struct stream *stream, uint64_t first, uint64_t last)
{
	uint64_t oldest = stream->number >= s->conf.ring ? stream->number - s->conf.ring + 1 : 1;

	for (uint64_t number = first > oldest ? first : oldest; number <= last; number++)
		if (!stream->ring[number % s->conf.ring].message)
			oldest = number + 1;
	return oldest;
}

void broadcast_sender_repeat(struct broadcast_sender *s, int to, uint64_t first, uint64_t last, int64_t now_ms)
{
	const struct stream *stream = sender_stream(s, to);
	uint64_t oldest;

	if (last > stream->number)
		last = stream->number;
	oldest = stream_oldest_kept(s, stream, first, last);
	if (first < oldest) {
		sender_say_forgotten(s, to, oldest, now_ms);
		first = oldest;
	}
	for (unsigned repeated = 0; first <= last && repeated < REPEAT_MAX; repeated++) {
		const struct kept *k = &stream->ring[first++ % s->conf.ring];

		memcpy(sender_room_for_words(s, to, k->len), k->message, k->len);
		count(COUNT_OBJECTS_REPEATED);
	}
}
