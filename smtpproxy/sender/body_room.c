/* body_room.c: counts bytes, of all messages and of each source. The room stays FULL until half of it is free, so that
 * the listening sockets do not close and open again with each message. */
#include "smtpproxy/sender/body_room.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

#define PREFIX_MAX 8u /* bytes of an IPv6 address that name a source */

struct body_source {
	struct body_source *next;
	struct client_address name; /* zeros behind the prefix */
	unsigned messages;
	uint64_t used; /* bytes */
};

static void move(struct body_room *r, enum body_room_state to)
{
	if (r->state == to)
		return;
	r->state = to;
	if (r->on_change)
		r->on_change(r->ctx);
}

void body_room_begin(struct body_room *r, uint64_t most, void (*on_change)(void *ctx), void *ctx)
{
	*r = (struct body_room){ .most = most, .on_change = on_change, .ctx = ctx };
	crypto_shorthash_keygen(r->hash_key);
}

static struct client_address name_of(const struct client_address *source)
{
	struct client_address name = { .len = source->len };

	memcpy(name.bytes, source->bytes, source->len < PREFIX_MAX ? source->len : PREFIX_MAX);
	return name;
}

static struct body_source **bucket_of(struct body_room *r, const struct client_address *name)
{
	uint8_t hash[crypto_shorthash_BYTES];
	uint64_t number;

	crypto_shorthash(hash, name->bytes, sizeof name->bytes, r->hash_key);
	memcpy(&number, hash, sizeof number);
	return &r->sources[number % BODY_ROOM_BUCKETS];
}

static int is_of(const struct body_source *s, const struct client_address *name)
{
	return s->name.len == name->len && memcmp(s->name.bytes, name->bytes, sizeof name->bytes) == 0;
}

struct body_source *body_room_enter(struct body_room *r, const struct client_address *source)
{
	const struct client_address name = name_of(source);
	struct body_source **bucket = bucket_of(r, &name);
	struct body_source *s = *bucket;

	while (s && !is_of(s, &name))
		s = s->next;
	if (!s) {
		s = calloc(1, sizeof *s);
		if (!s)
			return NULL;
		s->name = name;
		s->next = *bucket;
		*bucket = s;
	}
	s->messages++;
	return s;
}

void body_room_leave(struct body_room *r, struct body_source *s)
{
	struct body_source **at = bucket_of(r, &s->name);

	if (--s->messages > 0)
		return;
	assert(s->used == 0);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	free(s);
}

int body_room_is_short(const struct body_room *r)
{
	return r->used > r->most / 2;
}

static int has_its_part(const struct body_room *r, const struct body_source *s, size_t bytes)
{
	return s->messages > 1 && r->used + bytes > r->most / 2 && s->used + bytes > r->most / 4;
}

int body_room_take(struct body_room *r, struct body_source *s, size_t bytes)
{
	if (has_its_part(r, s, bytes))
		return CSSL_E_FULL;
	if (r->used + bytes > r->most) {
		move(r, BODY_ROOM_FULL);
		return CSSL_E_FULL;
	}
	r->used += bytes;
	s->used += bytes;
	return 0;
}

void body_room_give(struct body_room *r, struct body_source *s, size_t bytes)
{
	assert(bytes <= s->used);
	r->used -= bytes;
	s->used -= bytes;
	if (!body_room_is_short(r))
		move(r, BODY_ROOM_FREE);
}

int body_share_begin(struct body_room *room, struct body_share *h, const struct client_address *source)
{
	*h = (struct body_share){ .source = body_room_enter(room, source) };
	return h->source ? 0 : CSSL_E_NO_MEMORY;
}

int body_share_resize(struct body_room *room, struct body_share *h, size_t bytes)
{
	int r = 0;

	if (bytes > h->taken)
		r = body_room_take(room, h->source, bytes - h->taken);
	else
		body_room_give(room, h->source, h->taken - bytes);
	if (!r)
		h->taken = bytes;
	return r;
}

void body_share_end(struct body_room *room, struct body_share *h)
{
	if (!h->source)
		return;
	body_share_resize(room, h, 0);
	body_room_leave(room, h->source);
	*h = (struct body_share){ 0 };
}
