/* memory_source.c */
#include "tests/lib/memory_source.h"

#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

static struct memory_source *of(struct session_source *s)
{
	return (struct memory_source *)s;
}

static enum session_answer find(struct session_source *source, const uint8_t *id, size_t len, struct sess_obj *out)
{
	struct memory_source *s = of(source);

	s->finds++;
	for (size_t i = 0; i < s->count; i++) {
		struct memory_session *m = &s->sessions[i];
		if (len != SESSION_ID_LEN || memcmp(m->id, id, len) != 0)
			continue;
		if (m->place == MEMORY_ELSEWHERE)
			return SESSION_ELSEWHERE;
		return sess_obj_decode(m->bytes, m->len, out) == 0 ? SESSION_FOUND : SESSION_ABSENT;
	}
	return SESSION_ABSENT;
}

static void make_id(struct session_source *source, uint8_t out[static SESSION_ID_LEN])
{
	RAND_bytes(out, SESSION_ID_LEN);
}

static int keep(struct memory_source *s, const struct sess_obj *obj)
{
	ptrdiff_t len = sess_obj_encoded_len(obj);

	if (len < 0)
		return (int)len;
	if (s->count == MEMORY_SOURCE_MAX)
		return CSSL_E_FULL;
	struct memory_session *m = &s->sessions[s->count++];
	*m = (struct memory_session){ .bytes = malloc((size_t)len), .len = (size_t)len };
	memcpy(m->id, obj->facts.session_id, SESSION_ID_LEN);
	len = sess_obj_encode(obj, m->bytes, m->len);
	return len < 0 ? (int)len : 0;
}

static int share(struct session_source *source, struct worker *w, const struct sess_obj *obj)
{
	struct memory_source *s = of(source);
	int r = s->sharing == SHARE_ACCEPTS ? keep(s, obj) : CSSL_E_FULL;

	s->shares += r == 0;
	s->refused += r < 0;
	return r;
}

static bool family_revoked(struct session_source *source, const struct offered_family *family)
{
	struct memory_source *s = of(source);

	return (s->revocation == FAMILY_REVOKED && memcmp(s->revoked, family->id, FAMILY_ID_LEN) == 0) ||
	       (s->family_age_max_s && family->age_s > s->family_age_max_s);
}

static int ticket_key(
	struct session_source *source, const uint8_t *name, const uint8_t salt[static 16], struct ticket_key *out)
{
	struct memory_source *s = of(source);
	uint8_t own[16];

	memset(own, s->ticket_secret, sizeof(own));
	if (name && memcmp(name, own, sizeof(own)) != 0)
		return CSSL_E_KEY_UNKNOWN;
	memcpy(out->name, own, sizeof(own));
	for (size_t i = 0; i < sizeof(out->cipher_key); i++) {
		out->cipher_key[i] = (uint8_t)(salt[i % 16] ^ s->ticket_secret);
		out->mac_key[i] = (uint8_t)(salt[i % 16] + s->ticket_secret);
	}
	return 0;
}

void memory_source_start(struct memory_source *s, const char *origin)
{
	*s = (struct memory_source){ .source = { .origin = origin,
					     .find = find,
					     .make_id = make_id,
					     .share = share,
					     .family_revoked = family_revoked,
					     .ticket_key = ticket_key },
		.ticket_secret = 0x5c };
}

void memory_source_stop(struct memory_source *s)
{
	for (size_t i = 0; i < s->count; i++) {
		explicit_bzero(s->sessions[i].bytes, s->sessions[i].len);
		free(s->sessions[i].bytes);
	}
	s->count = 0;
}

void memory_source_copy(struct memory_source *to, const struct memory_source *from)
{
	for (size_t i = 0; i < from->count; i++) {
		struct sess_obj obj;
		if (sess_obj_decode(from->sessions[i].bytes, from->sessions[i].len, &obj) < 0 || keep(to, &obj) < 0)
			abort();
		sess_obj_destroy(&obj);
	}
}

void memory_source_place(struct memory_source *s, int place)
{
	for (size_t i = 0; i < s->count; i++)
		s->sessions[i].place = place;
}

void memory_source_age(struct memory_source *s, uint32_t family_age_s, uint32_t remaining_s)
{
	size_t count = s->count;

	s->count = 0;
	for (size_t i = 0; i < count; i++) {
		struct memory_session old = s->sessions[i];
		struct sess_obj obj;
		if (sess_obj_decode(old.bytes, old.len, &obj) < 0)
			abort();
		obj.facts.family_age_s = family_age_s;
		obj.session_remaining_s = remaining_s;
		if (keep(s, &obj) < 0)
			abort();
		sess_obj_destroy(&obj);
		free(old.bytes);
	}
}
