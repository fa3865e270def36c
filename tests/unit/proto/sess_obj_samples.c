/* sess_obj_samples.c: every byte field counts up from a start of its own, so that no two of them are alike. */
#include "tests/unit/proto/sess_obj_samples.h"

#include <string.h>

static void count_up(uint8_t *out, size_t len, unsigned from)
{
	for (size_t i = 0; i < len; i++)
		out[i] = (uint8_t)(from + i * 7);
}

static void fill_facts(struct session_facts *f, const struct cipher_suite *suite)
{
	f->protocol_version = suite->protocol_version;
	f->cipher_suite = suite->id;
	count_up(f->session_id, SESSION_ID_LEN, 1);
	f->session_id_len = SESSION_ID_LEN;
	count_up(f->family_id, FAMILY_ID_LEN, 2);
	f->family_age_s = 3600;
	strcpy(f->origin, "agent-3");
	strcpy(f->listener, "shop");
	strcpy(f->server_name, "www.example.org");
	strcpy(f->alpn, "http/1.1");
	count_up(f->client.bytes, 16, 3);
	f->client.len = 16;
	f->verify_result = 19; /* X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN */
	f->certificate_seen = CERTIFICATE_IN_CONNECTION;
	memcpy(f->ja4.kind, "t13d1516h2", sizeof(f->ja4.kind));
	count_up(f->ja4.ciphers, sizeof(f->ja4.ciphers), 16);
	count_up(f->ja4.extensions, sizeof(f->ja4.extensions), 17);
	count_up(f->context, sizeof(f->context), 4);
	f->context_len = sizeof(f->context);
}

static void fill_keys(struct direction_keys *k, const struct cipher_suite *suite, unsigned from)
{
	if (suite->protocol_version == 0x0304) {
		k->secret_len = suite->hash_len;
	} else {
		k->key_len = suite->key_len;
		k->iv_len = suite->iv_len;
	}
	count_up(k->secret, sizeof(k->secret), from);
	count_up(k->key, sizeof(k->key), from + 1);
	count_up(k->iv, sizeof(k->iv), from + 2);
}

static void fill_randoms(struct random_values *r, const struct cipher_suite *suite)
{
	count_up(r->server, RANDOM_LEN, 5);
	count_up(r->client, RANDOM_LEN, 6);
	r->len = RANDOM_LEN;
	r->secret_len = suite->protocol_version == 0x0304 ? suite->hash_len : 48;
	count_up(r->secret, r->secret_len, 7);
}

static void fill_live(struct live_part *l, const struct cipher_suite *suite)
{
	int tls13 = suite->protocol_version == 0x0304;

	count_up(l->connection.bytes, CONNECTION_ID_LEN, 8);
	l->epoch = 517;
	l->max_fragment = 4096;
	l->read_generation = tls13 ? 3 : 0;
	l->write_generation = tls13 ? 70000 : 0;
	l->read_sequence = (UINT64_C(1) << 48) - 1;
	l->write_sequence = 1;
	fill_keys(&l->client_write, suite, 20);
	fill_keys(&l->server_write, suite, 120);
	fill_randoms(&l->randoms, suite);
	if (!tls13 && suite->iv_len == 4)
		count_up(l->record_nonce, sizeof(l->record_nonce), 9);
	l->remaining_s = 86400;
	l->key_update = tls13 ? KEY_UPDATE_OWED : KEY_UPDATE_NOT_OWED;
	count_up(l->token, sizeof(l->token), 15);
	l->exported = EXPORT_AT_FREEZE;
	l->made_ms = INT64_C(1) << 40;
}

void sess_obj_sample_fill(struct sess_obj_sample *s, const struct cipher_suite *suite, enum sample_parts parts)
{
	memset(s, 0, sizeof(*s));
	fill_facts(&s->object.facts, suite);
	count_up(s->certificate, sizeof(s->certificate), 10);
	s->object.certificate = s->certificate;
	s->object.certificate_len = sizeof(s->certificate);
	if (parts & SAMPLE_RESUMPTION) {
		count_up(s->session, sizeof(s->session), 11);
		s->object.session = s->session;
		s->object.session_len = sizeof(s->session);
		s->object.session_remaining_s = 7200;
	}
	if (parts & SAMPLE_LIVE) {
		fill_live(&s->live, suite);
		s->object.live = &s->live;
	}
}

static int bytes_equal(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	return a_len == b_len && !a == !b && (a_len == 0 || memcmp(a, b, a_len) == 0);
}

static int facts_equal(const struct session_facts *a, const struct session_facts *b)
{
	return a->protocol_version == b->protocol_version && a->cipher_suite == b->cipher_suite &&
	       bytes_equal(a->session_id, a->session_id_len, b->session_id, b->session_id_len) &&
	       memcmp(a->family_id, b->family_id, FAMILY_ID_LEN) == 0 && a->family_age_s == b->family_age_s &&
	       strcmp(a->origin, b->origin) == 0 && strcmp(a->listener, b->listener) == 0 &&
	       strcmp(a->server_name, b->server_name) == 0 && strcmp(a->alpn, b->alpn) == 0 &&
	       bytes_equal(a->client.bytes, a->client.len, b->client.bytes, b->client.len) &&
	       a->verify_result == b->verify_result && a->certificate_seen == b->certificate_seen &&
	       memcmp(&a->ja4, &b->ja4, sizeof(a->ja4)) == 0 &&
	       bytes_equal(a->context, a->context_len, b->context, b->context_len);
}

static int keys_equal(const struct direction_keys *a, const struct direction_keys *b)
{
	return bytes_equal(a->secret, a->secret_len, b->secret, b->secret_len) &&
	       bytes_equal(a->key, a->key_len, b->key, b->key_len) && bytes_equal(a->iv, a->iv_len, b->iv, b->iv_len);
}

static int randoms_equal(const struct random_values *a, const struct random_values *b)
{
	return bytes_equal(a->server, a->len, b->server, b->len) && bytes_equal(a->client, a->len, b->client, b->len) &&
	       bytes_equal(a->secret, a->secret_len, b->secret, b->secret_len);
}

static int live_equal(const struct live_part *a, const struct live_part *b)
{
	if (!a || !b)
		return a == b;
	return memcmp(a->connection.bytes, b->connection.bytes, CONNECTION_ID_LEN) == 0 && a->epoch == b->epoch &&
	       a->max_fragment == b->max_fragment && a->read_generation == b->read_generation &&
	       a->write_generation == b->write_generation && a->read_sequence == b->read_sequence &&
	       a->write_sequence == b->write_sequence && keys_equal(&a->client_write, &b->client_write) &&
	       keys_equal(&a->server_write, &b->server_write) && randoms_equal(&a->randoms, &b->randoms) &&
	       memcmp(a->record_nonce, b->record_nonce, sizeof(a->record_nonce)) == 0 &&
	       a->remaining_s == b->remaining_s && a->key_update == b->key_update &&
	       memcmp(a->token, b->token, sizeof(a->token)) == 0 && a->exported == b->exported &&
	       a->made_ms == b->made_ms;
}

int sess_obj_equal(const struct sess_obj *a, const struct sess_obj *b)
{
	return facts_equal(&a->facts, &b->facts) &&
	       bytes_equal(a->certificate, a->certificate_len, b->certificate, b->certificate_len) &&
	       bytes_equal(a->session, a->session_len, b->session, b->session_len) &&
	       a->session_remaining_s == b->session_remaining_s && live_equal(a->live, b->live);
}
