/* own_provider.c: it has no state but the digests. */
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/provider.h>
#include <string.h>
#include <strings.h>

#include "proto/error.h"
#include "sslagent/tls/own_provider_internal.h"

static struct own_hash hashes[] = { { "SHA2-256", "SHA256", 32, 64, NULL }, { "SHA2-384", "SHA384", 48, 128, NULL } };

const struct own_hash *own_hash_named(const char *name)
{
	for (unsigned i = 0; i < sizeof hashes / sizeof hashes[0]; i++)
		if (strcasecmp(name, hashes[i].name) == 0 || strcasecmp(name, hashes[i].other_name) == 0)
			return &hashes[i];
	return NULL;
}

static const OSSL_ALGORITHM *on_query(void *provider, int operation, int *no_cache)
{
	static const OSSL_ALGORITHM *const of_operation[] = { [OSSL_OP_KDF] = own_kdf_algorithms,
		[OSSL_OP_MAC] = own_mac_algorithms,
		[OSSL_OP_KEYMGMT] = own_key_algorithms,
		[OSSL_OP_KEYEXCH] = own_exchange_algorithms };

	*no_cache = 0;
	return (unsigned)operation < sizeof of_operation / sizeof of_operation[0] ? of_operation[operation] : NULL;
}

static int on_capabilities(void *provider, const char *capability, OSSL_CALLBACK *callback, void *callback_ctx)
{
	return strcasecmp(capability, "TLS-GROUP") != 0 || own_x25519_group(callback, callback_ctx);
}

static const OSSL_DISPATCH provider_functions[] = { { OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))on_query },
	{ OSSL_FUNC_PROVIDER_GET_CAPABILITIES, (void (*)(void))on_capabilities }, { 0, NULL } };

static int on_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out, void **provider)
{
	*out = provider_functions;
	*provider = hashes;
	return 1;
}

static OSSL_PROVIDER *provider; /* until the process ends */

/* Default properties of OpenSSL's configuration may exclude it (fips=yes): then no connection could be exported. */
static int is_what_contexts_get(OSSL_LIB_CTX *library)
{
	EVP_KDF *kdf = EVP_KDF_fetch(library, OSSL_KDF_NAME_TLS1_3_KDF, "?" OWN_PROVIDER_PROPERTIES);
	int is = kdf && strcmp(OSSL_PROVIDER_get0_name(EVP_KDF_get0_provider(kdf)), OWN_PROVIDER_NAME) == 0;

	EVP_KDF_free(kdf);
	return is;
}

int own_provider_load(OSSL_LIB_CTX *library)
{
	for (unsigned i = 0; i < sizeof hashes / sizeof hashes[0]; i++) {
		hashes[i].md = EVP_MD_fetch(library, hashes[i].name, NULL);
		if (!hashes[i].md)
			return CSSL_E_CRYPTO;
	}
	/* Add it beside the providers of OpenSSL's default or configuration. */
	if (OSSL_PROVIDER_add_builtin(library, OWN_PROVIDER_NAME, on_init) != 1)
		return CSSL_E_CRYPTO;
	provider = OSSL_PROVIDER_try_load(library, OWN_PROVIDER_NAME, 1);
	return provider && is_what_contexts_get(library) ? 0 : CSSL_E_CRYPTO;
}
