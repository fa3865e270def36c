/* sess_obj_check.c: all checks of a SESS_OBJ that need no other state. */
#include "proto/sess_obj.h"

#include <string.h>

#include "proto/error.h"

#define TLS12 0x0303
#define TLS13 0x0304

#define MAX_FRAGMENT_LEAST 64u                 /* RFC 8449 4 */
#define MAX_FRAGMENT_MOST  16384u              /* RFC 8446 5.1 */
#define MASTER_SECRET_LEN  48u                 /* RFC 5246 8.1 */
#define SEQUENCES_TLS12    (UINT64_C(1) << 48) /* above them the epoch stands in the explicit nonce */

static int name_check(const char *name, size_t cap, size_t least)
{
	size_t len = strnlen(name, cap);

	if (len == cap)
		return CSSL_E_TOO_LONG;
	return len < least ? CSSL_E_RANGE : 0;
}

static int names_check(const struct session_facts *f)
{
	int r = name_check(f->origin, sizeof f->origin, 1);

	if (!r)
		r = name_check(f->listener, sizeof f->listener, 1);
	if (!r)
		r = name_check(f->server_name, sizeof f->server_name, 0);
	if (!r)
		r = name_check(f->alpn, sizeof f->alpn, 0);
	return r;
}

static int facts_check(const struct session_facts *f)
{
	if (f->session_id_len != 0 && f->session_id_len != SESSION_ID_LEN)
		return CSSL_E_RANGE;
	if (f->client.len != 0 && f->client.len != 4 && f->client.len != 16)
		return CSSL_E_RANGE;
	if (f->verify_result < INT32_MIN || f->verify_result > INT32_MAX)
		return CSSL_E_RANGE;
	if (f->context_len > sizeof f->context)
		return CSSL_E_TOO_LONG;
	return names_check(f);
}

static int resumption_check(const struct sess_obj *o)
{
	if (!o->session)
		return o->session_len == 0 ? 0 : CSSL_E_RANGE;
	if (o->session_len == 0 || o->facts.session_id_len != SESSION_ID_LEN)
		return CSSL_E_RANGE;
	if (o->session_len > SESSION_DER_MAX)
		return CSSL_E_TOO_LONG;
	return o->session_remaining_s > SESSION_LIFETIME_MAX_S ? CSSL_E_RANGE : 0;
}

static int certificate_check(const struct sess_obj *o)
{
	if (!o->certificate != (o->certificate_len == 0))
		return CSSL_E_RANGE;
	return o->certificate_len > CERTIFICATE_MAX ? CSSL_E_TOO_LONG : 0;
}

static bool keys_fit(const struct direction_keys *k, const struct cipher_suite *suite)
{
	if (suite->protocol_version == TLS13)
		return k->secret_len == suite->hash_len && k->key_len == 0 && k->iv_len == 0;
	return k->secret_len == 0 && k->key_len == suite->key_len && k->iv_len == suite->iv_len;
}

static bool randoms_fit(const struct random_values *r, const struct cipher_suite *suite)
{
	unsigned secret_len = suite->protocol_version == TLS13 ? suite->hash_len : MASTER_SECRET_LEN;

	return (r->len == 0 || r->len == RANDOM_LEN) && (r->secret_len == 0 || r->secret_len == secret_len);
}

/* TLS 1.2 has no KeyUpdate, and its sequence numbers leave room for the epoch. Those of TLS 1.3 must never wrap (RFC
 * 8446 5.3). */
static bool counts_fit(const struct live_part *l, uint16_t protocol_version)
{
	if (protocol_version == TLS13)
		return l->read_sequence < UINT64_MAX && l->write_sequence < UINT64_MAX;
	return l->read_sequence < SEQUENCES_TLS12 && l->write_sequence < SEQUENCES_TLS12 && l->read_generation == 0 &&
	       l->write_generation == 0 && l->key_update == KEY_UPDATE_NOT_OWED;
}

static int live_check(const struct live_part *l, const struct cipher_suite *suite)
{
	if (l->epoch == 0 || l->made_ms < 0 || !counts_fit(l, suite->protocol_version))
		return CSSL_E_RANGE;
	if (l->max_fragment != 0 && (l->max_fragment < MAX_FRAGMENT_LEAST || l->max_fragment > MAX_FRAGMENT_MOST))
		return CSSL_E_RANGE;
	if (!keys_fit(&l->client_write, suite) || !keys_fit(&l->server_write, suite))
		return CSSL_E_RANGE;
	return randoms_fit(&l->randoms, suite) ? 0 : CSSL_E_RANGE;
}

int sess_obj_check(const struct sess_obj *o)
{
	const struct cipher_suite *suite = cipher_suite_find(o->facts.cipher_suite);

	if (!suite || suite->protocol_version != o->facts.protocol_version)
		return CSSL_E_TYPE;
	int r = facts_check(&o->facts);
	if (!r)
		r = certificate_check(o);
	if (!r)
		r = resumption_check(o);
	if (!r && o->live)
		r = live_check(o->live, suite);
	return r;
}
