/* own_x25519.c: X25519 (RFC 7748) over libsodium, which costs less than OpenSSL's (own_x25519_pairs.c: much less).
 * OpenSSL holds the keys: EVP_PKEY counts the references, and a key exchange only points to keys that its EVP_PKEY_CTX
 * keeps. The private part is in OpenSSL's secure heap, as in OpenSSL's own X25519, and is wiped with the key. */
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/core_object.h>
#include <openssl/crypto.h>
#include <openssl/params.h>
#include <openssl/ssl.h>
#include <sodium.h>
#include <string.h>
#include <strings.h>

#include "sslagent/tls/own_provider_internal.h"
#include "sslagent/tls/own_x25519_pairs.h"

#define KEY_LEN       OWN_X25519_KEY_LEN
#define KEY_BITS      253
#define SECURITY_BITS 128

struct key {
	size_t public_len; /* KEY_LEN, or 0: not there */
	uint8_t public[KEY_LEN];
	uint8_t *private; /* in the secure heap; NULL: not there */
};

/* --- keys --- */

static void *on_key_new(void *provider)
{
	return OPENSSL_zalloc(sizeof(struct key));
}

static void drop_private(struct key *k)
{
	OPENSSL_secure_clear_free(k->private, KEY_LEN);
	k->private = NULL;
}

static void on_key_free(void *key)
{
	if (key)
		drop_private(key);
	OPENSSL_free(key);
}

/* Room for a private part; what was there is gone. */
static bool make_private(struct key *k)
{
	drop_private(k);
	k->private = OPENSSL_secure_malloc(KEY_LEN);
	return k->private != NULL;
}

static void *on_key_dup(const void *from, int selection)
{
	const struct key *f = from;
	struct key *k = on_key_new(NULL);

	if (!k)
		return NULL;
	if (selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY) {
		k->public_len = f->public_len;
		memcpy(k->public, f->public, KEY_LEN);
	}
	if (!(selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) || !f->private)
		return k;
	if (!make_private(k)) {
		on_key_free(k);
		return NULL;
	}
	memcpy(k->private, f->private, KEY_LEN);
	return k;
}

/* @key may be NULL: an EVP_PKEY that only has a type. */
static int on_key_has(const void *key, int selection)
{
	const struct key *k = key;

	return k && (!(selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY) || k->public_len) &&
	       (!(selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) || k->private);
}

/* Any 32 bytes are a public key (RFC 7748 5). A private key has to match its public key. */
static int on_key_validate(const void *key, int selection, int check)
{
	const struct key *k = key;
	uint8_t public[KEY_LEN];

	if (!on_key_has(key, selection))
		return 0;
	if ((selection & OSSL_KEYMGMT_SELECT_KEYPAIR) != OSSL_KEYMGMT_SELECT_KEYPAIR)
		return 1;
	return crypto_scalarmult_base(public, k->private) == 0 && CRYPTO_memcmp(public, k->public, KEY_LEN) == 0;
}

static int on_key_match(const void *a, const void *b, int selection)
{
	const struct key *one = a, *other = b;

	if (!(selection & OSSL_KEYMGMT_SELECT_KEYPAIR))
		return 1; /* X25519 keys have no parameters */
	return one->public_len && other->public_len && CRYPTO_memcmp(one->public, other->public, KEY_LEN) == 0;
}

/* @p may be NULL: then it reads nothing. */
static bool read_part(const OSSL_PARAM *p, uint8_t part[static KEY_LEN], size_t *len)
{
	void *to = part;

	return !p || (p->data_size == KEY_LEN && OSSL_PARAM_get_octet_string(p, &to, KEY_LEN, len));
}

static int on_key_import(void *key, int selection, const OSSL_PARAM params[])
{
	struct key *k = key;

	if (!read_part(OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_PUB_KEY), k->public, &k->public_len))
		return 0;
	const OSSL_PARAM *private = selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY
					    ? OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_PRIV_KEY)
					    : NULL;
	size_t len;
	if (private && (!make_private(k) || !read_part(private, k->private, &len)))
		return 0;
	if (k->private && !k->public_len)
		k->public_len = crypto_scalarmult_base(k->public, k->private) == 0 ? KEY_LEN : 0;
	return k->public_len != 0;
}

static int on_key_export(void *key, int selection, OSSL_CALLBACK *callback, void *callback_ctx)
{
	struct key *k = key;
	OSSL_PARAM params[3], *p = params;

	if (!on_key_has(key, selection))
		return 0;
	if (selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY)
		*p++ = OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, k->public, KEY_LEN);
	if (selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY)
		*p++ = OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, k->private, KEY_LEN);
	*p = OSSL_PARAM_construct_end();
	return callback(params, callback_ctx);
}

static const OSSL_PARAM *on_key_types(int selection)
{
	static const OSSL_PARAM public[] = { OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, NULL, 0),
		OSSL_PARAM_END };
	static const OSSL_PARAM both[] = { OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, NULL, 0),
		OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, NULL, 0), OSSL_PARAM_END };

	return selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY ? both : public;
}

/* --- parameters of a key --- */

static const OSSL_PARAM *on_key_gettable(void *provider)
{
	static const OSSL_PARAM params[] = { OSSL_PARAM_int(OSSL_PKEY_PARAM_BITS, NULL),
		OSSL_PARAM_int(OSSL_PKEY_PARAM_SECURITY_BITS, NULL), OSSL_PARAM_int(OSSL_PKEY_PARAM_MAX_SIZE, NULL),
		OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, NULL, 0),
		OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, NULL, 0),
		OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, NULL, 0), OSSL_PARAM_END };
	return params;
}

static int get_param(const struct key *k, OSSL_PARAM *p)
{
	if (strcmp(p->key, OSSL_PKEY_PARAM_BITS) == 0)
		return OSSL_PARAM_set_int(p, KEY_BITS);
	if (strcmp(p->key, OSSL_PKEY_PARAM_SECURITY_BITS) == 0)
		return OSSL_PARAM_set_int(p, SECURITY_BITS);
	if (strcmp(p->key, OSSL_PKEY_PARAM_MAX_SIZE) == 0)
		return OSSL_PARAM_set_int(p, KEY_LEN);
	if (strcmp(p->key, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY) == 0 || strcmp(p->key, OSSL_PKEY_PARAM_PUB_KEY) == 0)
		return k->public_len && OSSL_PARAM_set_octet_string(p, k->public, KEY_LEN);
	if (strcmp(p->key, OSSL_PKEY_PARAM_PRIV_KEY) == 0)
		return k->private && OSSL_PARAM_set_octet_string(p, k->private, KEY_LEN);
	return 1; /* not one of these parameters: leave it */
}

static int on_key_get(void *key, OSSL_PARAM params[])
{
	int ok = 1;

	for (OSSL_PARAM *p = params; ok && p && p->key; p++)
		ok = get_param(key, p);
	return ok;
}

static const OSSL_PARAM *on_key_settable(void *provider)
{
	static const OSSL_PARAM params[] = { OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, NULL, 0),
		OSSL_PARAM_END };
	return params;
}

/* The peer's public key as it stands in its key share (RFC 8446 4.2.8.2). */
static int on_key_set(void *key, const OSSL_PARAM params[])
{
	const OSSL_PARAM *p = params ? OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY) : NULL;
	struct key *k = key;

	if (!read_part(p, k->public, &k->public_len))
		return 0;
	if (p)
		drop_private(k);
	return 1;
}

/* --- making keys --- */

static int on_gen_set(void *gen, const OSSL_PARAM params[])
{
	const OSSL_PARAM *p = params ? OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_GROUP_NAME) : NULL;

	return !p || (p->data_type == OSSL_PARAM_UTF8_STRING && p->data && strcasecmp(p->data, "x25519") == 0);
}

static const OSSL_PARAM *on_gen_settable(void *gen, void *provider)
{
	static const OSSL_PARAM params[] = { OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, NULL, 0),
		OSSL_PARAM_END };
	return params;
}

/* The selection is the only state of a key generation. */
static void *on_gen_init(void *provider, int selection, const OSSL_PARAM params[])
{
	int *gen = on_gen_set(NULL, params) ? OPENSSL_malloc(sizeof *gen) : NULL;

	if (gen)
		*gen = selection;
	return gen;
}

static void on_gen_cleanup(void *gen)
{
	OPENSSL_free(gen);
}

static void *on_gen(void *gen, OSSL_CALLBACK *progress, void *progress_ctx)
{
	struct key *k = on_key_new(NULL);

	if (!k || !(*(int *)gen & OSSL_KEYMGMT_SELECT_KEYPAIR))
		return k; /* an empty key, for a peer's public key */
	if (!make_private(k) || !own_x25519_pair(k->private, k->public)) {
		on_key_free(k);
		return NULL;
	}
	k->public_len = KEY_LEN;
	return k;
}

/* --- key exchange --- */

struct exchange {
	const struct key *own, *peer;
};

static void *on_exchange_new(void *provider)
{
	return OPENSSL_zalloc(sizeof(struct exchange));
}

static void on_exchange_free(void *exchange)
{
	OPENSSL_free(exchange);
}

static void *on_exchange_dup(void *exchange)
{
	return OPENSSL_memdup(exchange, sizeof(struct exchange));
}

static int on_exchange_init(void *exchange, void *key, const OSSL_PARAM params[])
{
	struct exchange *x = exchange;

	x->own = key;
	x->peer = NULL;
	return x->own && x->own->private;
}

static int on_exchange_peer(void *exchange, void *key)
{
	struct exchange *x = exchange;

	x->peer = key;
	return x->peer && x->peer->public_len;
}

/* Fails when the result is all zeros, as for points of small order. RFC 8446 7.4.2 demands this check. */
static int on_derive(void *exchange, unsigned char *secret, size_t *len, size_t cap)
{
	const struct exchange *x = exchange;

	if (!x->own || !x->peer)
		return 0;
	*len = KEY_LEN;
	return !secret || (cap >= KEY_LEN && crypto_scalarmult(secret, x->own->private, x->peer->public) == 0);
}

/* --- as a group --- */

/* A context takes a group only from the provider whose keys it would use for it. */
int own_x25519_group(OSSL_CALLBACK *callback, void *callback_ctx)
{
	static const unsigned id = 0x001d, /* RFC 8446 4.2.7 */
		security_bits = SECURITY_BITS, is_kem = 0;
	static const int first = TLS1_VERSION, dtls_first = DTLS1_VERSION, no_last = 0;
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_CAPABILITY_TLS_GROUP_NAME, (char *)"x25519", 0),
		OSSL_PARAM_construct_utf8_string(OSSL_CAPABILITY_TLS_GROUP_NAME_INTERNAL, (char *)"X25519", 0),
		OSSL_PARAM_construct_utf8_string(OSSL_CAPABILITY_TLS_GROUP_ALG, (char *)"X25519", 0),
		OSSL_PARAM_construct_uint(OSSL_CAPABILITY_TLS_GROUP_ID, (unsigned *)&id),
		OSSL_PARAM_construct_uint(OSSL_CAPABILITY_TLS_GROUP_SECURITY_BITS, (unsigned *)&security_bits),
		OSSL_PARAM_construct_uint(OSSL_CAPABILITY_TLS_GROUP_IS_KEM, (unsigned *)&is_kem),
		OSSL_PARAM_construct_int(OSSL_CAPABILITY_TLS_GROUP_MIN_TLS, (int *)&first),
		OSSL_PARAM_construct_int(OSSL_CAPABILITY_TLS_GROUP_MAX_TLS, (int *)&no_last),
		OSSL_PARAM_construct_int(OSSL_CAPABILITY_TLS_GROUP_MIN_DTLS, (int *)&dtls_first),
		OSSL_PARAM_construct_int(OSSL_CAPABILITY_TLS_GROUP_MAX_DTLS, (int *)&no_last),
		OSSL_PARAM_construct_end(),
	};

	return callback(params, callback_ctx);
}

/* --- as algorithms --- */

#define FN(f) ((void (*)(void))(f))

static const OSSL_DISPATCH key_functions[] = { { OSSL_FUNC_KEYMGMT_NEW, FN(on_key_new) },
	{ OSSL_FUNC_KEYMGMT_FREE, FN(on_key_free) }, { OSSL_FUNC_KEYMGMT_DUP, FN(on_key_dup) },
	{ OSSL_FUNC_KEYMGMT_HAS, FN(on_key_has) }, { OSSL_FUNC_KEYMGMT_VALIDATE, FN(on_key_validate) },
	{ OSSL_FUNC_KEYMGMT_MATCH, FN(on_key_match) }, { OSSL_FUNC_KEYMGMT_IMPORT, FN(on_key_import) },
	{ OSSL_FUNC_KEYMGMT_IMPORT_TYPES, FN(on_key_types) }, { OSSL_FUNC_KEYMGMT_EXPORT, FN(on_key_export) },
	{ OSSL_FUNC_KEYMGMT_EXPORT_TYPES, FN(on_key_types) }, { OSSL_FUNC_KEYMGMT_GET_PARAMS, FN(on_key_get) },
	{ OSSL_FUNC_KEYMGMT_GETTABLE_PARAMS, FN(on_key_gettable) }, { OSSL_FUNC_KEYMGMT_SET_PARAMS, FN(on_key_set) },
	{ OSSL_FUNC_KEYMGMT_SETTABLE_PARAMS, FN(on_key_settable) }, { OSSL_FUNC_KEYMGMT_GEN_INIT, FN(on_gen_init) },
	{ OSSL_FUNC_KEYMGMT_GEN_SET_PARAMS, FN(on_gen_set) },
	{ OSSL_FUNC_KEYMGMT_GEN_SETTABLE_PARAMS, FN(on_gen_settable) }, { OSSL_FUNC_KEYMGMT_GEN, FN(on_gen) },
	{ OSSL_FUNC_KEYMGMT_GEN_CLEANUP, FN(on_gen_cleanup) }, { 0, NULL } };

static const OSSL_DISPATCH exchange_functions[] = { { OSSL_FUNC_KEYEXCH_NEWCTX, FN(on_exchange_new) },
	{ OSSL_FUNC_KEYEXCH_FREECTX, FN(on_exchange_free) }, { OSSL_FUNC_KEYEXCH_DUPCTX, FN(on_exchange_dup) },
	{ OSSL_FUNC_KEYEXCH_INIT, FN(on_exchange_init) }, { OSSL_FUNC_KEYEXCH_SET_PEER, FN(on_exchange_peer) },
	{ OSSL_FUNC_KEYEXCH_DERIVE, FN(on_derive) }, { 0, NULL } };

const OSSL_ALGORITHM own_key_algorithms[] = { { "X25519:1.3.101.110", OWN_PROVIDER_PROPERTIES, key_functions, NULL },
	{ NULL, NULL, NULL, NULL } };
const OSSL_ALGORITHM own_exchange_algorithms[] = {
	{ "X25519:1.3.101.110", OWN_PROVIDER_PROPERTIES, exchange_functions, NULL }, { NULL, NULL, NULL, NULL }
};
