/* sess_obj.c: converts between C values and protobuf.
 *
 * Out: the message is a struct on the stack whose fields point into the caller's object. Packing copies each byte
 * once. In: protobuf-c unpacks into scratch memory. The values are taken from there into locals, checked, and only
 * then copied into the one allocation that the result owns. All memory that held keys on the way is wiped, also
 * after an error.
 */
#include "proto/sess_obj.h"

#include <openssl/crypto.h>
#include <sodium.h>
#include <string.h>

#include "proto/error.h"
#include "proto/scratch.h"
#include "proto/sess_obj.pb-c.h"

#define TLS12 0x0303

/* A message, when unpacked, needs its structs and its bytes, each piece rounded up; and there is room for some
 * fields of a later format. */
#define SCRATCH_STRUCTS  6144u
#define SCRATCH_PER_BYTE 2u

/* The message of one object. */
struct form {
	Cssl__SessObj object;
	Cssl__Resumption resumption;
	Cssl__Live live;
	Cssl__Live__RandomValues randoms;
	Cssl__Live__SessionKeys keys;
};

static ProtobufCBinaryData sess_obj_name_of(const char *name)
{
	return bytes_of(name, strlen(name));
}

#ifdef CSSL_TEST_POINTS
static uint8_t news[] = { 4, 'n', 'e', 'w', 's' }; /* with its length, as protobuf expects it */
static ProtobufCMessageUnknownField next_field = { 99, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, sizeof news, news };
static unsigned next_formats; /* 1: this process writes like a next release */

void sess_obj_write_next_format(void)
{
	next_formats = 1;
}
#endif

static void form_facts(Cssl__SessObj *to, const struct session_facts *f)
{
	to->format = SESS_OBJ_FORMAT;
#ifdef CSSL_TEST_POINTS
	to->format += next_formats;
	to->base.n_unknown_fields = next_formats;
	to->base.unknown_fields = &next_field;
#endif
	to->protocol_version = f->protocol_version;
	to->cipher_suite = f->cipher_suite;
	to->session_id = bytes_of(f->session_id, f->session_id_len);
	to->origin = sess_obj_name_of(f->origin);
	to->family_id = bytes_of(f->family_id, FAMILY_ID_LEN);
	to->family_age_s = f->family_age_s;
	to->listener = sess_obj_name_of(f->listener);
	to->server_name = sess_obj_name_of(f->server_name);
	to->alpn = sess_obj_name_of(f->alpn);
	to->client_address = bytes_of(f->client.bytes, f->client.len);
	to->verify_result = f->verify_result;
	to->certificate_in_connection = f->certificate_seen == CERTIFICATE_IN_CONNECTION;
	to->session_id_context = bytes_of(f->context, f->context_len);
	to->ja4 = bytes_of(&f->ja4, f->ja4.kind[0] ? sizeof f->ja4 : 0);
}

static void form_keys(Cssl__Live__SessionKeys *to, const struct live_part *l)
{
	to->server_write_secret = bytes_of(l->server_write.secret, l->server_write.secret_len);
	to->client_write_secret = bytes_of(l->client_write.secret, l->client_write.secret_len);
	to->server_write_key = bytes_of(l->server_write.key, l->server_write.key_len);
	to->client_write_key = bytes_of(l->client_write.key, l->client_write.key_len);
	to->server_write_iv = bytes_of(l->server_write.iv, l->server_write.iv_len);
	to->client_write_iv = bytes_of(l->client_write.iv, l->client_write.iv_len);
}

static void form_randoms(struct form *to, const struct random_values *r, uint16_t protocol_version)
{
	ProtobufCBinaryData secret = bytes_of(r->secret, r->secret_len);

	to->randoms.server_random = bytes_of(r->server, r->len);
	to->randoms.client_random = bytes_of(r->client, r->len);
	if (protocol_version == TLS12)
		to->randoms.master_secret = secret;
	else
		to->live.exporter_secret = secret;
	if (r->len > 0 || to->randoms.master_secret.len > 0)
		to->live.random_values = &to->randoms;
}

static void form_live(struct form *to, const struct live_part *l, const struct session_facts *f)
{
	to->live.connection_id = bytes_of(l->connection.bytes, CONNECTION_ID_LEN);
	to->live.epoch = l->epoch;
	to->live.read_generation = l->read_generation;
	to->live.write_generation = l->write_generation;
	to->live.read_sequence = l->read_sequence;
	to->live.write_sequence = l->write_sequence;
	to->live.max_fragment = l->max_fragment;
	to->live.remaining_s = l->remaining_s;
	to->live.key_update_owed = l->key_update == KEY_UPDATE_OWED;
	if (cipher_suite_has_record_nonce(cipher_suite_find(f->cipher_suite)))
		to->live.record_nonce = bytes_of(l->record_nonce, sizeof l->record_nonce);
	if (live_part_has_token(l))
		to->live.adopt_token = bytes_of(l->token, sizeof l->token);
	to->live.frozen = l->exported == EXPORT_AT_FREEZE;
	to->live.made_ms = l->made_ms;
	to->live.session_keys = &to->keys;
	form_keys(&to->keys, l);
	form_randoms(to, &l->randoms, f->protocol_version);
	to->object.live = &to->live;
}

/* Fill the form after checking the object: the packed length, or negative. */
static ptrdiff_t form_fill(struct form *to, const struct sess_obj *o)
{
	int r = sess_obj_check(o);

	if (r)
		return r;
	cssl__sess_obj__init(&to->object);
	cssl__resumption__init(&to->resumption);
	cssl__live__init(&to->live);
	cssl__live__random_values__init(&to->randoms);
	cssl__live__session_keys__init(&to->keys);
	form_facts(&to->object, &o->facts);
	to->object.client_certificate = bytes_of(o->certificate, o->certificate_len);
	if (o->session) {
		to->resumption.session = bytes_of(o->session, o->session_len);
		to->resumption.remaining_s = o->session_remaining_s;
		to->object.resumption = &to->resumption;
	}
	if (o->live)
		form_live(to, o->live, &o->facts);
	size_t len = cssl__sess_obj__get_packed_size(&to->object);
	return len > SESS_OBJ_LEN_MAX ? CSSL_E_TOO_LONG : (ptrdiff_t)len;
}

ptrdiff_t sess_obj_encoded_len(const struct sess_obj *o)
{
	struct form form;

	return form_fill(&form, o);
}

ptrdiff_t sess_obj_encode(const struct sess_obj *o, uint8_t *out, size_t cap)
{
	struct form form;
	ptrdiff_t len = form_fill(&form, o);

	if (len < 0)
		return len;
	if ((size_t)len > cap)
		return CSSL_E_TOO_LONG;
	return (ptrdiff_t)cssl__sess_obj__pack(&form.object, out);
}

/* Taking values out of the message: the first error stays, as with a spent cursor. */

static void take_bytes(int *error, const ProtobufCBinaryData *in, uint8_t *out, size_t cap, uint8_t *len)
{
	if (*error)
		return;
	if (in->len > cap) {
		*error = CSSL_E_TOO_LONG;
		return;
	}
	if (in->len > 0)
		memcpy(out, in->data, in->len);
	*len = (uint8_t)in->len;
}

static void take_exactly(int *error, const ProtobufCBinaryData *in, uint8_t *out, size_t len)
{
	uint8_t taken = 0;

	if (!*error && in->len != len)
		*error = CSSL_E_RANGE;
	take_bytes(error, in, out, len, &taken);
}

static void sess_obj_take_name(int *error, const ProtobufCBinaryData *in, char *out, size_t cap)
{
	uint8_t len = 0;

	if (!*error && in->len > 0 && memchr(in->data, '\0', in->len))
		*error = CSSL_E_RANGE;
	take_bytes(error, in, (uint8_t *)out, cap - 1, &len);
	out[len] = '\0';
}

static void take_u16(int *error, uint32_t in, uint16_t *out)
{
	if (!*error && in > UINT16_MAX)
		*error = CSSL_E_RANGE;
	*out = (uint16_t)in;
}

static int take_facts(const Cssl__SessObj *m, struct session_facts *f)
{
	int r = 0;

	take_u16(&r, m->protocol_version, &f->protocol_version);
	take_u16(&r, m->cipher_suite, &f->cipher_suite);
	take_bytes(&r, &m->session_id, f->session_id, sizeof f->session_id, &f->session_id_len);
	sess_obj_take_name(&r, &m->origin, f->origin, sizeof f->origin);
	take_exactly(&r, &m->family_id, f->family_id, sizeof f->family_id);
	f->family_age_s = m->family_age_s;
	sess_obj_take_name(&r, &m->listener, f->listener, sizeof f->listener);
	sess_obj_take_name(&r, &m->server_name, f->server_name, sizeof f->server_name);
	sess_obj_take_name(&r, &m->alpn, f->alpn, sizeof f->alpn);
	take_bytes(&r, &m->client_address, f->client.bytes, sizeof f->client.bytes, &f->client.len);
	f->verify_result = m->verify_result;
	f->certificate_seen = m->certificate_in_connection ? CERTIFICATE_IN_CONNECTION : CERTIFICATE_IN_SESSION;
	take_bytes(&r, &m->session_id_context, f->context, sizeof f->context, &f->context_len);
	if (m->ja4.len > 0)
		take_exactly(&r, &m->ja4, (uint8_t *)&f->ja4, sizeof f->ja4);
	return r;
}

static int take_keys(const Cssl__Live__SessionKeys *m, struct live_part *l)
{
	struct direction_keys *client = &l->client_write, *server = &l->server_write;
	int r = m ? 0 : CSSL_E_RANGE;

	if (r)
		return r;
	take_bytes(&r, &m->server_write_secret, server->secret, sizeof server->secret, &server->secret_len);
	take_bytes(&r, &m->client_write_secret, client->secret, sizeof client->secret, &client->secret_len);
	take_bytes(&r, &m->server_write_key, server->key, sizeof server->key, &server->key_len);
	take_bytes(&r, &m->client_write_key, client->key, sizeof client->key, &client->key_len);
	take_bytes(&r, &m->server_write_iv, server->iv, sizeof server->iv, &server->iv_len);
	take_bytes(&r, &m->client_write_iv, client->iv, sizeof client->iv, &client->iv_len);
	return r;
}

/* Each protocol version has a field of its own for the secret. The other field must be empty. */
static int take_randoms(const Cssl__Live *m, const struct session_facts *f, struct random_values *out)
{
	const Cssl__Live__RandomValues none = CSSL__LIVE__RANDOM_VALUES__INIT;
	const Cssl__Live__RandomValues *values = m->random_values ? m->random_values : &none;
	const ProtobufCBinaryData *secret = &m->exporter_secret, *foreign = &values->master_secret;
	uint8_t server_len = 0;
	int r = 0;

	if (f->protocol_version == TLS12) {
		secret = &values->master_secret;
		foreign = &m->exporter_secret;
	}
	take_bytes(&r, &values->server_random, out->server, sizeof out->server, &server_len);
	take_bytes(&r, &values->client_random, out->client, sizeof out->client, &out->len);
	take_bytes(&r, secret, out->secret, sizeof out->secret, &out->secret_len);
	if (!r && (server_len != out->len || foreign->len > 0))
		r = CSSL_E_RANGE;
	return r;
}

static int take_live(const Cssl__Live *m, const struct session_facts *f, struct live_part *l)
{
	const struct cipher_suite *suite = cipher_suite_find(f->cipher_suite);
	int r = suite ? 0 : CSSL_E_TYPE;

	if (r)
		return r;
	take_exactly(&r, &m->connection_id, l->connection.bytes, sizeof l->connection.bytes);
	take_exactly(&r, &m->record_nonce, l->record_nonce,
		cipher_suite_has_record_nonce(suite) ? sizeof l->record_nonce : 0);
	take_u16(&r, m->epoch, &l->epoch);
	take_u16(&r, m->max_fragment, &l->max_fragment);
	l->read_generation = m->read_generation;
	l->write_generation = m->write_generation;
	l->read_sequence = m->read_sequence;
	l->write_sequence = m->write_sequence;
	l->remaining_s = m->remaining_s;
	l->key_update = m->key_update_owed ? KEY_UPDATE_OWED : KEY_UPDATE_NOT_OWED;
	if (m->adopt_token.len > 0)
		take_exactly(&r, &m->adopt_token, l->token, sizeof l->token);
	l->exported = m->frozen ? EXPORT_AT_FREEZE : EXPORT_WHILE_OWNED;
	l->made_ms = m->made_ms;
	if (!r)
		r = take_keys(m->session_keys, l);
	if (!r)
		r = take_randoms(m, f, &l->randoms);
	return r;
}

static unsigned unknown_fields(const Cssl__SessObj *m)
{
	unsigned count = m->base.n_unknown_fields;

	if (m->resumption)
		count += m->resumption->base.n_unknown_fields;
	if (m->live)
		count += m->live->base.n_unknown_fields;
	if (m->live && m->live->random_values)
		count += m->live->random_values->base.n_unknown_fields;
	if (m->live && m->live->session_keys)
		count += m->live->session_keys->base.n_unknown_fields;
	return count;
}

static int format_check(const Cssl__SessObj *m)
{
	if (m->format != SESS_OBJ_FORMAT && m->format != SESS_OBJ_FORMAT_NEXT)
		return CSSL_E_VERSION;
	return m->format == SESS_OBJ_FORMAT && unknown_fields(m) > 0 ? CSSL_E_TRAILING : 0;
}

/* All values of @m, checked; pointers of @o go into the message, and o->live to @live. */
static int take_object(const Cssl__SessObj *m, struct sess_obj *o, struct live_part *live)
{
	int r = format_check(m);

	if (!r)
		r = take_facts(m, &o->facts);
	if (!r && m->live)
		r = take_live(m->live, &o->facts, live);
	if (r)
		return r;
	o->live = m->live ? live : NULL;
	if (m->client_certificate.len > 0) {
		o->certificate = m->client_certificate.data;
		o->certificate_len = m->client_certificate.len;
	}
	if (m->resumption) {
		o->session = m->resumption->session.data;
		o->session_len = m->resumption->session.len;
		o->session_remaining_s = m->resumption->remaining_s;
		if (o->session_len == 0)
			return CSSL_E_RANGE;
	}
	return sess_obj_check(o);
}

/* The parts that a decoded object owns, one after the other. */
struct owned {
	size_t len;
	uint8_t parts[] __attribute__((aligned(16)));
};

static const uint8_t *own_bytes(uint8_t **at, const uint8_t *from, size_t len)
{
	uint8_t *copy = *at;

	if (!from)
		return NULL;
	memcpy(copy, from, len);
	*at += len;
	return copy;
}

/* Let @o own copies of all it points to. 0 or CSSL_E_NO_MEMORY. */
static int sess_obj_own(struct sess_obj *o)
{
	size_t live_len = o->live ? sizeof *o->live : 0;
	size_t len = sizeof(struct owned) + live_len + o->certificate_len + o->session_len;
	struct owned *owned = OPENSSL_malloc(len);

	if (!owned)
		return CSSL_E_NO_MEMORY;
	owned->len = len;
	uint8_t *at = owned->parts;
	o->live = (struct live_part *)own_bytes(&at, (const uint8_t *)o->live, live_len);
	o->certificate = own_bytes(&at, o->certificate, o->certificate_len);
	o->session = own_bytes(&at, o->session, o->session_len);
	o->memory = owned;
	return 0;
}

int sess_obj_decode(const uint8_t *in, size_t len, struct sess_obj *out)
{
	struct scratch scratch;
	struct sess_obj o = { 0 };
	struct live_part live = { 0 };

	if (len > SESS_OBJ_LEN_MAX)
		return CSSL_E_TOO_LONG;
	int r = scratch_open(&scratch, SCRATCH_STRUCTS + SCRATCH_PER_BYTE * len);
	if (r)
		return r;
	Cssl__SessObj *message = cssl__sess_obj__unpack(&scratch.allocator, len, in);
	if (!message)
		r = scratch.refused ? CSSL_E_TOO_LONG : CSSL_E_TRUNCATED;
	if (!r)
		r = take_object(message, &o, &live);
	if (!r)
		r = sess_obj_own(&o);
	if (!r)
		*out = o;
	live_part_wipe(&live);
	scratch_close(&scratch);
	return r;
}

void sess_obj_destroy(struct sess_obj *o)
{
	if (!o)
		return;
	struct owned *owned = o->memory;
	if (owned)
		OPENSSL_clear_free(owned, owned->len);
	*o = (struct sess_obj){ 0 };
}

bool live_part_has_token(const struct live_part *l)
{
	return !sodium_is_zero(l->token, sizeof l->token);
}

void live_part_wipe(struct live_part *l)
{
	OPENSSL_cleanse(l, sizeof *l);
}
