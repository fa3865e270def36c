/* delivered.c: implements delivered.h. */
#include "sslagent/service/http/delivered.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "proto/error.h"
#include "proto/wire.h"
#include "sslagent/service/http/message_head.h"

#define NOTE_MARK UINT64_MAX

_Static_assert(DELIVERED_LOOK_LEN == crypto_generichash_BYTES, "libsodium's default");
_Static_assert(DELIVERED_KEY_LEN == crypto_onetimeauth_KEYBYTES, "Poly1305");
_Static_assert(DELIVERED_DIGEST_LEN == crypto_onetimeauth_BYTES, "Poly1305");
_Static_assert(
	DELIVERED_NOTE_MAX == 8 + DELIVERED_LOOK_LEN + 8 + 4 + 1 + DELIVERED_KEY_LEN + 2 * (8 + DELIVERED_DIGEST_LEN),
	"what delivered_note() writes");

/* --- the digest of a body --- */

/* Of the digest before and [data, data + len). @out may be b->chain. */
static void delivered_digest(
	const struct body_digest *b, const uint8_t *data, size_t len, uint8_t out[static DELIVERED_DIGEST_LEN])
{
	crypto_onetimeauth_state state;

	crypto_onetimeauth_init(&state, b->key);
	crypto_onetimeauth_update(&state, b->chain, sizeof b->chain);
	crypto_onetimeauth_update(&state, data, len);
	crypto_onetimeauth_final(&state, out);
	sodium_memzero(&state, sizeof state);
}

/* Adds at most one block. Returns how many bytes. */
static size_t add_some(struct body_digest *b, const uint8_t *data, size_t len)
{
	const size_t tail = b->len % DELIVERED_BLOCK, room = DELIVERED_BLOCK - tail;
	const size_t n = len < room ? len : room;

	b->len += n;
	if (n == DELIVERED_BLOCK) {
		delivered_digest(b, data, n, b->chain);
		return n;
	}
	memcpy(b->tail + tail, data, n);
	if (n == room)
		delivered_digest(b, b->tail, DELIVERED_BLOCK, b->chain);
	return n;
}

static void add_body(struct body_digest *b, const uint8_t *data, size_t len)
{
	for (size_t used = 0; used < len;)
		used += add_some(b, data + used, len - used);
}

static void body_now(const struct body_digest *b, uint8_t out[static DELIVERED_DIGEST_LEN])
{
	delivered_digest(b, b->tail, b->len % DELIVERED_BLOCK, out);
}

/* --- the answer --- */

/* Fields that differ between answers that are not the same. */
static const char *const looks[] = { "Content-Length", "Transfer-Encoding", "Content-Type", "Content-Encoding",
	"Content-Range", "ETag", "Last-Modified" };

static void delivered_look_for(const char *name, const uint8_t *head, size_t len, crypto_generichash_state *into)
{
	struct head_lines lines = { (const char *)head, (const char *)head + len };
	struct head_text line, field, value;

	while (head_next_line(&lines, &line) == HEAD_FIELD) {
		if (head_split_field(&line, &field, &value) < 0 || !head_is_word(&field, name))
			continue;
		crypto_generichash_update(into, (const uint8_t *)value.at, value.len);
		crypto_generichash_update(into, (const uint8_t *)"\n", 1); /* no value has one */
	}
}

static void delivered_look(const uint8_t *head, const struct response_head *h, uint8_t out[static DELIVERED_LOOK_LEN])
{
	const uint8_t status[2] = { (uint8_t)(h->status >> 8), (uint8_t)h->status };
	crypto_generichash_state state;

	crypto_generichash_init(&state, NULL, 0, DELIVERED_LOOK_LEN);
	crypto_generichash_update(&state, status, sizeof status);
	for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
		delivered_look_for(looks[i], head, h->len, &state);
		crypto_generichash_update(&state, (const uint8_t *)"\n", 1);
	}
	crypto_generichash_final(&state, out, DELIVERED_LOOK_LEN);
}

/* Does the head tell where a body ends, without the end of the connection? */
static bool is_framed(const struct response_head *h)
{
	if (h->status < 200 || h->status == 204 || h->status == 304 || (h->odd & (SEEN_LENGTH | SEEN_CODING)))
		return false;
	if (h->seen & SEEN_CODING)
		return !(h->seen & (SEEN_LENGTH | SEEN_OLD));
	return h->seen & SEEN_LENGTH && h->length > 0;
}

int delivered_begins(const uint8_t *data, size_t len, struct delivered *out)
{
	struct response_head h;

	if (response_head_read(data, len < MESSAGE_HEAD_MAX ? len : MESSAGE_HEAD_MAX, &h) != 0 || !is_framed(&h))
		return DELIVERED_NOT;
	*out = (struct delivered){
		.len = h.seen & SEEN_CODING ? ANSWER_CHUNKED : h.length,
		.head_len = (uint32_t)h.len,
		.closes = response_head_persists(&h) ? ANSWER_PERSISTS : ANSWER_CLOSES,
	};
	delivered_look(data, &h, out->look);
	randombytes_buf(out->body.key, sizeof out->body.key);
	return 0;
}

/* The next @len bytes of the answer. */
static void delivered_add(struct delivered *d, const uint8_t *data, size_t len)
{
	const uint64_t head = d->at < d->head_len ? d->head_len - d->at : 0;
	const size_t skip = head < len ? (size_t)head : len;

	d->at += len;
	add_body(&d->body, data + skip, len - skip);
}

/* --- for a move --- */

_Static_assert(DELIVERED_STATE_LEN ==
		       DELIVERED_LOOK_LEN + 8 + 8 + 4 + 1 + DELIVERED_KEY_LEN + DELIVERED_DIGEST_LEN + DELIVERED_BLOCK,
	"what delivered_save() writes");

void delivered_save(const struct delivered *d, uint8_t out[static DELIVERED_STATE_LEN])
{
	struct wire_writer w = wire_writer(out, DELIVERED_STATE_LEN);

	wire_put_bytes(&w, d->look, sizeof d->look);
	wire_put_u64(&w, d->len);
	wire_put_u64(&w, d->at);
	wire_put_u32(&w, d->head_len);
	wire_put_u8(&w, d->closes);
	wire_put_bytes(&w, d->body.key, sizeof d->body.key);
	wire_put_bytes(&w, d->body.chain, sizeof d->body.chain);
	wire_put_bytes(&w, d->body.tail, sizeof d->body.tail);
}

int delivered_restore(const uint8_t *in, size_t len, struct delivered *out)
{
	struct wire_reader reader = wire_reader(in, len);
	struct delivered d = { 0 };

	const uint8_t *look = wire_bytes(&reader, sizeof d.look);
	d.len = wire_u64(&reader);
	d.at = wire_u64(&reader);
	d.head_len = wire_u32(&reader);
	d.closes = wire_u8(&reader);
	const uint8_t *key = wire_bytes(&reader, sizeof d.body.key);
	const uint8_t *chain = wire_bytes(&reader, sizeof d.body.chain),
		      *tail = wire_bytes(&reader, sizeof d.body.tail);
	int r = wire_reader_end(&reader);
	if (r)
		return r;
	if (d.len == 0 || d.head_len == 0 || d.head_len > MESSAGE_HEAD_MAX || d.closes > ANSWER_CLOSES)
		return CSSL_E_RANGE;
	d.body.len = d.at > d.head_len ? d.at - d.head_len : 0;
	memcpy(d.look, look, sizeof d.look);
	memcpy(d.body.key, key, sizeof d.body.key);
	memcpy(d.body.chain, chain, sizeof d.body.chain);
	memcpy(d.body.tail, tail, sizeof d.body.tail);
	*out = d;
	return 0;
}

/* --- the owner's watch --- */

int delivered_watch(struct delivered_watch **w, const struct delivered *answer)
{
	delivered_unwatch(w);
	*w = malloc(sizeof **w);
	if (!*w)
		return CSSL_E_NO_MEMORY;
	**w = (struct delivered_watch){ .now = *answer, .ahead = *answer };
	return 0;
}

void delivered_unwatch(struct delivered_watch **w)
{
	if (!*w)
		return;
	sodium_memzero(*w, sizeof **w);
	free(*w);
	*w = NULL;
}

/* --- the note for a successor --- */

static void put_mark(struct wire_writer *w, const struct delivered *d)
{
	uint8_t now[DELIVERED_DIGEST_LEN];

	body_now(&d->body, now);
	wire_put_u64(w, d->at);
	wire_put_bytes(w, now, sizeof now);
}

size_t delivered_note(
	struct delivered_watch *w, const uint8_t *next, size_t len, uint8_t out[static DELIVERED_NOTE_MAX])
{
	struct wire_writer note = wire_writer(out, DELIVERED_NOTE_MAX);

	w->ahead = w->now;
	delivered_add(&w->ahead, next, len);
	wire_put_u64(&note, NOTE_MARK);
	wire_put_bytes(&note, w->now.look, sizeof w->now.look);
	wire_put_u64(&note, w->now.len);
	wire_put_u32(&note, w->now.head_len);
	wire_put_u8(&note, w->now.closes);
	wire_put_bytes(&note, w->now.body.key, sizeof w->now.body.key);
	put_mark(&note, &w->now);
	put_mark(&note, &w->ahead);
	return (size_t)wire_writer_len(&note);
}

void delivered_passed(struct delivered_watch *w, const uint8_t *data, size_t len)
{
	if (w->now.at + len == w->ahead.at)
		w->now = w->ahead;
	else
		delivered_add(&w->now, data, len);
}

bool delivered_is_note(const uint8_t *note, size_t len)
{
	struct wire_reader r = wire_reader(note, len);

	return len >= 8 && wire_u64(&r) == NOTE_MARK;
}

/* --- a successor --- */

/* Takes the mark if it is at @delivered. */
static void take_mark(struct wire_reader *in, uint64_t delivered, struct repetition *r)
{
	const uint64_t at = wire_u64(in);
	const uint8_t *of = wire_bytes(in, DELIVERED_DIGEST_LEN);

	if (!of || at != delivered)
		return;
	memcpy(r->digest, of, sizeof r->digest);
	r->answer.at = at;
}

int repetition_read(const uint8_t *note, size_t len, uint64_t delivered, struct repetition *out)
{
	struct wire_reader in = wire_reader(note, len);
	struct repetition next = { .step = REPETITION_BEGINS };
	struct delivered *d = &next.answer;

	const uint64_t mark = wire_u64(&in);
	const uint8_t *look = wire_bytes(&in, sizeof d->look);
	d->len = wire_u64(&in);
	d->head_len = wire_u32(&in);
	d->closes = wire_u8(&in);
	const uint8_t *key = wire_bytes(&in, sizeof d->body.key);
	take_mark(&in, delivered, &next);
	take_mark(&in, delivered, &next);
	int r = wire_reader_end(&in);
	if (r)
		return r;
	if (mark != NOTE_MARK || d->len == 0 || d->head_len == 0 || d->head_len > MESSAGE_HEAD_MAX ||
		d->closes > ANSWER_CLOSES)
		return CSSL_E_RANGE;
	/* law 10: neither digest is that of exactly the bytes which the client has */
	if (d->at != delivered || delivered < d->head_len)
		return CSSL_E_NOT_FOUND;
	memcpy(d->look, look, sizeof d->look);
	memcpy(d->body.key, key, sizeof d->body.key);
	next.goal = delivered - d->head_len;
	if (next.goal > d->len)
		return CSSL_E_RANGE;
	*out = next;
	return 0;
}

/* 0, REPETITION_MORE or CSSL_E_MISMATCH. */
static int hear_head(struct repetition *r, const uint8_t *data, size_t len, size_t *head_len)
{
	struct response_head h;
	struct delivered again;
	size_t at = 0;
	int known;

	/* heads of 1xx are no part of the answer: a server may send none, or others, the second time */
	while ((known = response_head_read(data + at, len - at, &h)) == 0 && h.status / 100 == 1 && h.status != 101)
		at += h.len;
	if (known == RESPONSE_HEAD_INCOMPLETE && len - at < MESSAGE_HEAD_MAX)
		return REPETITION_MORE;
	/* law 10: another head means another answer, even if the bytes that the client has were the same */
	if (known != 0 || delivered_begins(data + at, len - at, &again) != 0 || again.len != r->answer.len ||
		memcmp(again.look, r->answer.look, sizeof again.look) != 0)
		return CSSL_E_MISMATCH;
	if (again.closes == ANSWER_CLOSES)
		r->answer.closes = ANSWER_CLOSES;
	*head_len = at + h.len;
	return 0;
}

int repetition_hear(struct repetition *r, const uint8_t *data, size_t len, struct repetition_heard *out)
{
	uint8_t now[DELIVERED_DIGEST_LEN];

	*out = (struct repetition_heard){ 0 };
	if (r->step == REPETITION_BEGINS) {
		int known = hear_head(r, data, len, &out->head_len);
		if (known != 0)
			return known;
		r->step = REPETITION_IN_BODY;
	}
	const uint64_t left = r->goal - r->answer.body.len;
	const size_t n = left < len - out->head_len ? (size_t)left : len - out->head_len;
	add_body(&r->answer.body, data + out->head_len, n);
	out->len = out->head_len + n;
	if (n < left)
		return REPETITION_MORE;
	body_now(&r->answer.body, now);
	return sodium_memcmp(now, r->digest, sizeof now) == 0 ? 0 : CSSL_E_MISMATCH;
}
