/* sealed_copy.c: sealing happens in place, behind the label and the nonce in the caller's buffer, so that key
 * material is nowhere else. The nonce is random: 24 random bytes never repeat in practice, so no agent has to
 * remember the nonces of another. */
#include "proto/sealed_copy.h"

#include <openssl/crypto.h>
#include <sodium.h>
#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"

#define NONCE_LEN     crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_LEN       crypto_aead_xchacha20poly1305_ietf_ABYTES
#define LABEL_LEN_MAX (1 + 2 + 1 + KEY_ID_MAX)
#define LISTENER_LEN  sizeof(((struct session_facts *)NULL)->listener)
#define BOUND_LEN_MAX (LABEL_LEN_MAX + CONNECTION_ID_LEN + LISTENER_LEN)

_Static_assert(KEY_LEN == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "subkeys fit the AEAD");

static size_t label_len(const char *key_id)
{
	return 1 + 2 + 1 + strlen(key_id);
}

static void label_write(struct wire_writer *w, uint16_t epoch, const char *key_id)
{
	wire_put_u8(w, SEALED_COPY_VERSION);
	wire_put_u16(w, epoch);
	wire_put_u8(w, (uint8_t)strlen(key_id));
	wire_put_bytes(w, key_id, strlen(key_id));
}

static int label_read(struct wire_reader *r, struct sealed_copy_label *out)
{
	uint8_t version = wire_u8(r);
	uint16_t epoch = wire_u16(r);
	uint8_t id_len = wire_u8(r);
	const uint8_t *id = wire_bytes(r, id_len);

	if (!id)
		return CSSL_E_TRUNCATED;
	if (version != SEALED_COPY_VERSION)
		return CSSL_E_VERSION;
	if (epoch == 0 || id_len == 0 || id_len > KEY_ID_MAX || memchr(id, '\0', id_len))
		return CSSL_E_RANGE;
	out->epoch = epoch;
	memcpy(out->key_id, id, id_len);
	out->key_id[id_len] = '\0';
	return 0;
}

/* One use of the AEAD. Holds a key: wipe. */
struct sealing {
	uint8_t bound[BOUND_LEN_MAX];
	size_t bound_len;
	uint8_t key[KEY_LEN];
};

/* Associated data: the label as it is in the copy, and the values to which the copy is bound. The label contains its
 * length and the connection id has a fixed length, so two different bindings never give the same bytes. 0,
 * CSSL_E_KEY_UNKNOWN or CSSL_E_TOO_LONG.
 */
static int sealing_prepare(struct sealing *s, const struct key_ring *ring, const struct sealed_copy_label *label,
	const struct connection_id *connection, const char *listener)
{
	struct wire_writer w = wire_writer(s->bound, sizeof s->bound);
	int index = key_ring_find(ring, label->key_id, strlen(label->key_id));

	if (index < 0)
		return index;
	label_write(&w, label->epoch, label->key_id);
	wire_put_bytes(&w, connection->bytes, CONNECTION_ID_LEN);
	wire_put_bytes(&w, listener, strlen(listener));
	ptrdiff_t len = wire_writer_len(&w);
	if (len < 0)
		return (int)len;
	s->bound_len = (size_t)len;
	key_ring_subkey(ring, (unsigned)index, SUBKEY_SEALED_COPY, s->key, sizeof s->key);
	return 0;
}

/* Does @o speak of this connection, listener and epoch? */
static int binding_check(
	const struct sess_obj *o, const struct connection_id *connection, const char *listener, uint16_t epoch)
{
	if (!o->live)
		return CSSL_E_RANGE;
	if (o->live->epoch != epoch || strcmp(o->facts.listener, listener) != 0 ||
		memcmp(o->live->connection.bytes, connection->bytes, CONNECTION_ID_LEN) != 0)
		return CSSL_E_MISMATCH;
	return 0;
}

/* The part of @o that goes into a copy. An adopting agent continues a connection and resumes no session, so it needs
 * no more. The token is in the nonce. @live belongs to the caller, who wipes it. */
static struct sess_obj carried_part(const struct sess_obj *o, struct live_part *live)
{
	struct sess_obj carried = *o;

	carried.session = NULL;
	carried.session_len = 0;
	carried.session_remaining_s = 0;
	carried.memory = NULL;
	if (o->live) {
		*live = *o->live;
		memset(live->token, 0, sizeof live->token);
		carried.live = live;
	}
	return carried;
}

/* Write @obj to @out, which has room for @cap bytes, and seal it there. Bytes written, or negative. */
static ptrdiff_t seal_in_place(
	const struct sealing *s, const uint8_t *nonce, const struct sess_obj *obj, uint8_t *out, size_t cap)
{
	struct live_part live = { 0 };
	struct sess_obj carried = carried_part(obj, &live);
	ptrdiff_t len = cap < TAG_LEN ? CSSL_E_TOO_LONG : sess_obj_encode(&carried, out, cap - TAG_LEN);

	live_part_wipe(&live);
	if (len < 0)
		return len;
	crypto_aead_xchacha20poly1305_ietf_encrypt(
		out, NULL, out, (size_t)len, s->bound, s->bound_len, NULL, nonce, s->key);
	return len + (ptrdiff_t)TAG_LEN;
}

/* 8 bytes are random at each use, whatever the token. */
static void make_nonce(uint8_t nonce[static NONCE_LEN], const struct live_part *l)
{
	randombytes_buf(nonce, NONCE_LEN);
	if (live_part_has_token(l))
		memcpy(nonce, l->token, ADOPT_TOKEN_LEN);
}

ptrdiff_t sealed_copy_seal(const struct key_ring *ring, const struct sess_obj *obj, uint8_t *out, size_t cap)
{
	struct sealed_copy_label label;
	struct wire_writer w = wire_writer(out, cap);
	struct sealing s;
	uint8_t nonce[NONCE_LEN];

	if (!obj->live)
		return CSSL_E_RANGE;
	label.epoch = obj->live->epoch;
	memcpy(label.key_id, ring->keys[0].id, sizeof label.key_id);
	make_nonce(nonce, obj->live);
	label_write(&w, label.epoch, label.key_id);
	wire_put_bytes(&w, nonce, sizeof nonce);
	ptrdiff_t head_len = wire_writer_len(&w);
	if (head_len < 0)
		return head_len;
	int r = sealing_prepare(&s, ring, &label, &obj->live->connection, obj->facts.listener);
	if (r)
		return r;
	ptrdiff_t len = seal_in_place(&s, nonce, obj, out + head_len, cap - (size_t)head_len);
	sodium_memzero(&s, sizeof s);
	return len < 0 ? len : head_len + len;
}

int sealed_copy_peek(const uint8_t *in, size_t len, struct sealed_copy_label *out)
{
	struct wire_reader reader = wire_reader(in, len);
	int r = label_read(&reader, out);

	if (r)
		return r;
	if (wire_left(&reader) < NONCE_LEN + TAG_LEN)
		return CSSL_E_TRUNCATED;
	memcpy(out->token, wire_bytes(&reader, ADOPT_TOKEN_LEN), ADOPT_TOKEN_LEN);
	return 0;
}

/* Unseal @len bytes at @sealed, TAG_LEN at least, and decode them. */
static int open_sealed(
	const struct sealing *s, const uint8_t *nonce, const uint8_t *sealed, size_t len, struct sess_obj *out)
{
	size_t plain_len = len - TAG_LEN;
	uint8_t *plain = OPENSSL_malloc(plain_len + 1);
	int r = 0;

	if (!plain)
		return CSSL_E_NO_MEMORY;
	if (crypto_aead_xchacha20poly1305_ietf_decrypt(
		    plain, NULL, NULL, sealed, len, s->bound, s->bound_len, nonce, s->key) != 0)
		r = CSSL_E_AUTH;
	if (!r)
		r = sess_obj_decode(plain, plain_len, out);
	OPENSSL_clear_free(plain, plain_len + 1);
	return r;
}

/* The object gets older by the time for which RAgent kept the copy. */
static int grow_older(struct sess_obj *o, uint32_t age_s)
{
	uint32_t *family_age_s = &o->facts.family_age_s;

	if (age_s >= o->live->remaining_s)
		return CSSL_E_EXPIRED;
	o->live->remaining_s -= age_s;
	*family_age_s = age_s < UINT32_MAX - *family_age_s ? *family_age_s + age_s : UINT32_MAX;
	return 0;
}

int sealed_copy_open(const struct key_ring *ring, const struct connection_id *connection, const char *listener,
	const uint8_t *in, size_t len, uint32_t age_s, struct sess_obj *out, uint16_t *epoch)
{
	struct sealed_copy_label label;
	struct sealing s;
	int r = sealed_copy_peek(in, len, &label);

	if (r)
		return r;
	size_t head_len = label_len(label.key_id) + NONCE_LEN;
	if (len - head_len > SESS_OBJ_LEN_MAX + TAG_LEN)
		return CSSL_E_TOO_LONG;
	r = sealing_prepare(&s, ring, &label, connection, listener);
	if (r)
		return r;
	r = open_sealed(&s, in + label_len(label.key_id), in + head_len, len - head_len, out);
	sodium_memzero(&s, sizeof s);
	if (r)
		return r;
	r = binding_check(out, connection, listener, label.epoch);
	if (!r)
		r = grow_older(out, age_s);
	if (r) {
		sess_obj_destroy(out);
		return r;
	}
	memcpy(out->live->token, label.token, ADOPT_TOKEN_LEN);
	*epoch = label.epoch;
	return 0;
}
