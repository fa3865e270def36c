/* lean_provider.c: each call goes to the default provider of another library context, and so do the algorithms for what
 * they need themselves. Only the table of ciphers is another one. */
#include "sslagent/tls/lean_provider.h"

#include <openssl/core.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/provider.h>
#include <string.h>
#include <strings.h>

#include "proto/error.h"

#define DEFAULT_PROVIDER "default"

/* By their first name. */
static const char *const ciphers_of_tls[] = { "AES-128-GCM", "AES-256-GCM", "ChaCha20-Poly1305", "AES-128-CCM",
	"AES-256-CCM", "AES-128-CBC", "AES-256-CBC", "AES-128-CBC-HMAC-SHA1", "AES-256-CBC-HMAC-SHA1",
	"AES-128-CBC-HMAC-SHA256", "AES-256-CBC-HMAC-SHA256", "ARIA-128-GCM", "ARIA-256-GCM", "CAMELLIA-128-CBC",
	"CAMELLIA-256-CBC", "DES-EDE3-CBC", "NULL" };
#define CIPHERS (sizeof ciphers_of_tls / sizeof ciphers_of_tls[0])

static OSSL_PROVIDER *complete; /* the default one, until the process ends */
static OSSL_ALGORITHM ciphers[CIPHERS + 1];

static int is_of_tls(const char *names)
{
	const size_t len = strcspn(names, ":");

	for (size_t i = 0; i < CIPHERS; i++)
		if (strlen(ciphers_of_tls[i]) == len && strncasecmp(names, ciphers_of_tls[i], len) == 0)
			return 1;
	return 0;
}

static void choose(const OSSL_ALGORITHM *all)
{
	size_t count = 0;

	for (; all && all->algorithm_names && count < CIPHERS; all++)
		if (is_of_tls(all->algorithm_names))
			ciphers[count++] = *all;
}

static const OSSL_ALGORITHM *on_query(void *provider, int operation, int *no_cache)
{
	if (operation != OSSL_OP_CIPHER)
		return OSSL_PROVIDER_query_operation(complete, operation, no_cache);
	*no_cache = 0;
	return ciphers;
}

static const OSSL_PARAM *on_gettable(void *provider)
{
	return OSSL_PROVIDER_gettable_params(complete);
}

static int on_get(void *provider, OSSL_PARAM params[])
{
	return OSSL_PROVIDER_get_params(complete, params);
}

static int on_capabilities(void *provider, const char *capability, OSSL_CALLBACK *callback, void *callback_ctx)
{
	return OSSL_PROVIDER_get_capabilities(complete, capability, callback, callback_ctx);
}

static const OSSL_DISPATCH provider_functions[] = { { OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))on_query },
	{ OSSL_FUNC_PROVIDER_GETTABLE_PARAMS, (void (*)(void))on_gettable },
	{ OSSL_FUNC_PROVIDER_GET_PARAMS, (void (*)(void))on_get },
	{ OSSL_FUNC_PROVIDER_GET_CAPABILITIES, (void (*)(void))on_capabilities }, { 0, NULL } };

static int on_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out, void **provider)
{
	*out = provider_functions;
	*provider = OSSL_PROVIDER_get0_provider_ctx(complete);
	return 1;
}

static int count_another(OSSL_PROVIDER *provider, void *others)
{
	*(int *)others += strcmp(OSSL_PROVIDER_get0_name(provider), DEFAULT_PROVIDER) != 0;
	return 1;
}

int lean_provider_begin(void)
{
	return OPENSSL_init_crypto(OPENSSL_INIT_NO_ADD_ALL_CIPHERS, NULL) == 1 ? 0 : CSSL_E_CRYPTO;
}

int lean_provider_may_load(void)
{
	int others = 0;

	OSSL_PROVIDER_do_all(NULL, count_another, &others);
	return others == 0;
}

int lean_provider_load(OSSL_LIB_CTX *library, OSSL_LIB_CTX *whole)
{
	int no_cache = 0;

	complete = OSSL_PROVIDER_load(whole, DEFAULT_PROVIDER);
	if (!complete)
		return CSSL_E_CRYPTO;
	choose(OSSL_PROVIDER_query_operation(complete, OSSL_OP_CIPHER, &no_cache));
	if (OSSL_PROVIDER_add_builtin(library, LEAN_PROVIDER_NAME, on_init) != 1)
		return CSSL_E_CRYPTO;
	return OSSL_PROVIDER_load(library, LEAN_PROVIDER_NAME) ? 0 : CSSL_E_CRYPTO;
}
