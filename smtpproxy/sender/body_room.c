/* body_room.c: counts bytes, of all messages and of each source. The room stays FULL until half of it is free, so that
 * the listening sockets do not close and open again with each message. */
#include "smtpproxy/sender/body_room.h"

#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "proto/error.h"

#define PREFIX_MAX 8u /* bytes of an IPv6 address that name a source */

struct body_source {
	struct table_link link;
	struct client_address name; /* zeros behind the prefix */
	unsigned messages;
	uint64_t used; /* bytes */
};

static void room_move(struct body_room *r, enum body_room_state to)
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

static struct body_source *of_link(struct table_link *link)
{
	return link ? container_of(link, struct body_source, link) : NULL;
}

int body_share_begin(struct body_room *r, struct body_share *h, const struct client_address *source)
{
	struct client_address name = { .len = source->len };
	uint8_t hash[crypto_shorthash_BYTES];
	struct body_source *s;
	uint64_t number;

	memcpy(name.bytes, source->bytes, source->len < PREFIX_MAX ? source->len : PREFIX_MAX);
	crypto_shorthash(hash, name.bytes, sizeof name.bytes, r->hash_key);
	memcpy(&number, hash, sizeof number);
	s = of_link(table_first(&r->sources, number));
	while (s && (s->name.len != name.len || memcmp(s->name.bytes, name.bytes, sizeof name.bytes)))
		s = of_link(table_next(&s->link));
	if (!s) {
		s = calloc(1, sizeof *s);
		if (!s || table_add(&r->sources, &s->link, number)) {
			free(s);
			return CSSL_E_NO_MEMORY;
		}
		s->name = name;
	}
	s->messages++;
	*h = (struct body_share){ .room = r, .source = s };
	return 0;
}

bool body_room_is_short(const struct body_room *r)
{
	return r->used > r->most / 2;
}

int body_share_resize(struct body_share *h, size_t bytes)
{
	struct body_room *r = h->room;
	struct body_source *s = h->source;

	if (bytes > h->taken) {
		const size_t more = bytes - h->taken;

		if (s->messages > 1 && r->used + more > r->most / 2 && s->used + more > r->most / 4)
			return CSSL_E_FULL;
		if (r->used + more > r->most) {
			room_move(r, BODY_ROOM_FULL);
			return CSSL_E_FULL;
		}
	}
	r->used = r->used + bytes - h->taken;
	s->used = s->used + bytes - h->taken;
	if (bytes <= h->taken && !body_room_is_short(r))
		room_move(r, BODY_ROOM_FREE);
	h->taken = bytes;
	return 0;
}

int body_share_add(struct body_share *h, struct message *m, const void *data, size_t len, size_t most)
{
	const size_t before = h->taken;
	int r;

	if (len > most || m->len > most - len)
		return CSSL_E_TOO_LONG;
	r = body_share_resize(h, before - m->cap + message_cap_with(m, len, most));
	if (r)
		return r;
	r = message_add(m, data, len, most);
	if (r)
		body_share_resize(h, before);
	return r;
}

void body_share_end(struct body_share *h)
{
	struct body_room *r = h->room;

	if (!h->source)
		return;
	body_share_resize(h, 0);
	if (--h->source->messages == 0) {
		table_remove(&r->sources, &h->source->link);
		free(h->source);
	}
	if (!r->sources.count)
		table_clear(&r->sources);
	*h = (struct body_share){ 0 };
}
