/* sealed_note.c: implements sealed_note.h. */
#include "sslagent/service/sealed_note.h"

#include <sodium.h>
#include <string.h>

#include "proto/error.h"
#include "proto/sess_obj.h"
#include "proto/wire.h"

#define NONCE_LEN     crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_LEN       crypto_aead_xchacha20poly1305_ietf_ABYTES
#define LABEL_LEN_MAX (2u + KEY_ID_MAX)
#define BOUND_LEN_MAX (LABEL_LEN_MAX + CONNECTION_ID_LEN + sizeof(((struct session_facts *)NULL)->listener))

_Static_assert(SEALED_NOTE_MAX == LABEL_LEN_MAX + NONCE_LEN + SERVICE_NOTE_MAX + TAG_LEN, "sealed_note.h says it");

/* --- sealing --- */

/* One use of the AEAD. It holds a key: wipe it. */
struct sealing {
	uint8_t bound[BOUND_LEN_MAX]; /* associated data: the label first */
	size_t label_len, bound_len;
	uint8_t key[KEY_LEN];
};

static int sealed_note_prepare(
	struct sealing *s, const struct key_ring *ring, const struct note_binding *to, const char *id, size_t id_len)
{
	struct wire_writer w = wire_writer(s->bound, sizeof s->bound);
	int index = key_ring_find(ring, id, id_len);

	if (index < 0)
		return index;
	wire_put_u8(&w, SEALED_NOTE_VERSION);
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

ptrdiff_t sealed_note_seal(const struct key_ring *ring, const struct note_binding *to, const uint8_t *note, size_t len,
	uint8_t out[static SEALED_NOTE_MAX])
{
	struct sealing s;
	int r = sealed_note_prepare(&s, ring, to, ring->keys[0].id, strlen(ring->keys[0].id));

	if (r)
		return r;
	uint8_t *nonce = out + s.label_len, *sealed = nonce + NONCE_LEN;
	memcpy(out, s.bound, s.label_len);
	randombytes_buf(nonce, NONCE_LEN);
	crypto_aead_xchacha20poly1305_ietf_encrypt(sealed, NULL, note, len, s.bound, s.bound_len, NULL, nonce, s.key);
	sodium_memzero(&s, sizeof s);
	return sealed - out + (ptrdiff_t)(len + TAG_LEN);
}

ptrdiff_t sealed_note_open(const struct key_ring *ring, const struct note_binding *to, const uint8_t *in, size_t len,
	uint8_t out[static SERVICE_NOTE_MAX])
{
	struct wire_reader reader = wire_reader(in, len);
	struct sealing s;
	uint8_t version = wire_u8(&reader), id_len = wire_u8(&reader);
	const uint8_t *id = wire_bytes(&reader, id_len), *nonce = wire_bytes(&reader, NONCE_LEN);
	size_t sealed_len = wire_left(&reader);

	if (!nonce || sealed_len < TAG_LEN)
		return CSSL_E_TRUNCATED;
	if (version != SEALED_NOTE_VERSION)
		return CSSL_E_VERSION;
	if (id_len > KEY_ID_MAX || sealed_len > SERVICE_NOTE_MAX + TAG_LEN)
		return CSSL_E_RANGE;
	int r = sealed_note_prepare(&s, ring, to, (const char *)id, id_len);
	if (r)
		return r;
	if (crypto_aead_xchacha20poly1305_ietf_decrypt(out, NULL, NULL, wire_bytes(&reader, sealed_len), sealed_len,
		    s.bound, s.bound_len, nonce, s.key) != 0)
		r = CSSL_E_AUTH;
	sodium_memzero(&s, sizeof s);
	return r ? r : (ptrdiff_t)(sealed_len - TAG_LEN);
}
