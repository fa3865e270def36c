/* sealed_download.c: see sealed_download.h. */
#include "sslagent/service/sealed_download.h"

#include <sodium.h>
#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"

#define NONCE_LEN     crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_LEN       crypto_aead_xchacha20poly1305_ietf_ABYTES
#define LABEL_LEN_MAX (2u + KEY_ID_MAX)
#define PLAIN_LEN_MAX (30u + DOWNLOAD_ETAG_MAX)
#define BOUND_LEN_MAX (LABEL_LEN_MAX + CONNECTION_ID_LEN + sizeof(((struct session_facts *)NULL)->listener))

_Static_assert(SEALED_DOWNLOAD_MAX == LABEL_LEN_MAX + NONCE_LEN + PLAIN_LEN_MAX + TAG_LEN, "sealed_download.h says it");

/* --- plaintext, both ways --- */

static size_t put_plain(const struct download *d, uint8_t out[static PLAIN_LEN_MAX])
{
	struct wire_writer w = wire_writer(out, PLAIN_LEN_MAX);

	wire_put_u64(&w, d->first);
	wire_put_u64(&w, d->len);
	wire_put_u64(&w, d->total);
	wire_put_u32(&w, d->head_len);
	wire_put_u8(&w, d->closes);
	wire_put_u8(&w, d->etag_len);
	wire_put_bytes(&w, d->etag, d->etag_len);
	return (size_t)wire_writer_len(&w);
}

static int take_plain(const uint8_t *in, size_t len, struct download *out)
{
	struct wire_reader r = wire_reader(in, len);
	struct download d = { 0 };

	d.first = wire_u64(&r);
	d.len = wire_u64(&r);
	d.total = wire_u64(&r);
	d.head_len = wire_u32(&r);
	d.closes = wire_u8(&r);
	d.etag_len = wire_u8(&r);
	const uint8_t *etag = wire_bytes(&r, d.etag_len);
	int error = wire_reader_end(&r);
	if (error)
		return error;
	if (d.len == 0 || d.len > d.total || d.first > d.total - d.len || d.head_len == 0 ||
		d.head_len > DOWNLOAD_HEAD_MAX || d.closes > DOWNLOAD_CLOSES || d.etag_len > DOWNLOAD_ETAG_MAX)
		return CSSL_E_RANGE;
	memcpy(d.etag, etag, d.etag_len);
	*out = d;
	return 0;
}

/* --- sealing --- */

/* One use of the AEAD. Holds a key: wipe. */
struct sealing {
	uint8_t bound[BOUND_LEN_MAX]; /* associated data: the label first */
	size_t label_len, bound_len;
	uint8_t key[KEY_LEN];
};

static int prepare(struct sealing *s, const struct key_ring *ring, const struct download_binding *to, const char *id,
	size_t id_len)
{
	struct wire_writer w = wire_writer(s->bound, sizeof s->bound);
	int index = key_ring_find(ring, id, id_len);

	if (index < 0)
		return index;
	wire_put_u8(&w, SEALED_DOWNLOAD_VERSION);
	wire_put_u8(&w, (uint8_t)id_len);
	wire_put_bytes(&w, id, id_len);
	s->label_len = 2 + id_len;
	wire_put_bytes(&w, to->connection.bytes, CONNECTION_ID_LEN);
	wire_put_bytes(&w, to->listener, strlen(to->listener));
	ptrdiff_t len = wire_writer_len(&w);
	if (len < 0)
		return (int)len;
	s->bound_len = (size_t)len;
	key_ring_subkey(ring, (unsigned)index, SUBKEY_SEALED_DOWNLOAD, s->key, sizeof s->key);
	return 0;
}

ptrdiff_t sealed_download_seal(const struct key_ring *ring, const struct download_binding *to, const struct download *d,
	uint8_t out[static SEALED_DOWNLOAD_MAX])
{
	struct sealing s;
	uint8_t plain[PLAIN_LEN_MAX];
	int error = prepare(&s, ring, to, ring->keys[0].id, strlen(ring->keys[0].id));

	if (error)
		return error;
	uint8_t *nonce = out + s.label_len, *sealed = nonce + NONCE_LEN;
	size_t len = put_plain(d, plain);
	memcpy(out, s.bound, s.label_len);
	randombytes_buf(nonce, NONCE_LEN);
	crypto_aead_xchacha20poly1305_ietf_encrypt(sealed, NULL, plain, len, s.bound, s.bound_len, NULL, nonce, s.key);
	sodium_memzero(&s, sizeof s);
	return sealed - out + (ptrdiff_t)(len + TAG_LEN);
}

int sealed_download_open(const struct key_ring *ring, const struct download_binding *to, const uint8_t *in, size_t len,
	struct download *out)
{
	struct wire_reader r = wire_reader(in, len);
	struct sealing s;
	uint8_t plain[PLAIN_LEN_MAX], version = wire_u8(&r), id_len = wire_u8(&r);
	const uint8_t *id = wire_bytes(&r, id_len), *nonce = wire_bytes(&r, NONCE_LEN);
	size_t sealed_len = wire_left(&r);

	if (!nonce || sealed_len < TAG_LEN)
		return CSSL_E_TRUNCATED;
	if (version != SEALED_DOWNLOAD_VERSION)
		return CSSL_E_VERSION;
	if (id_len > KEY_ID_MAX || sealed_len > PLAIN_LEN_MAX + TAG_LEN)
		return CSSL_E_RANGE;
	int error = prepare(&s, ring, to, (const char *)id, id_len);
	if (error)
		return error;
	if (crypto_aead_xchacha20poly1305_ietf_decrypt(
		    plain, NULL, NULL, wire_bytes(&r, sealed_len), sealed_len, s.bound, s.bound_len, nonce, s.key) != 0)
		error = CSSL_E_AUTH;
	sodium_memzero(&s, sizeof s);
	return error ? error : take_plain(plain, sealed_len - TAG_LEN, out);
}
