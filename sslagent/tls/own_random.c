/* own_random.c: a provider with one generator (provider-rand(7)), which has no state and needs no seed. */
#include "sslagent/tls/own_random.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <openssl/rand.h>
#include <sodium.h>
#include <string.h>

#include "proto/error.h"

#define PROVIDER    "cssl-random"
#define STRENGTH    256u /* bits */
#define REQUEST_MAX ((size_t)65536)

static int stateless; /* what stands for a context */

static void *on_new(void *provider, void *parent, const OSSL_DISPATCH *of_parent)
{
	return &stateless;
}

static void on_free(void *generator)
{
}

static int on_instantiate(void *generator, unsigned strength, int prediction_resistance, const unsigned char *text,
	size_t text_len, const OSSL_PARAM params[])
{
	return strength <= STRENGTH;
}

static int on_uninstantiate(void *generator)
{
	return 1;
}

static int on_generate(void *generator, unsigned char *out, size_t len, unsigned strength, int prediction_resistance,
	const unsigned char *more, size_t more_len)
{
	if (strength > STRENGTH)
		return 0;
	randombytes_buf(out, len);
	return 1;
}

static int on_reseed(void *generator, int prediction_resistance, const unsigned char *entropy, size_t entropy_len,
	const unsigned char *more, size_t more_len)
{
	return 1; /* the kernel does that */
}

/* Each thread has a pool of its own, so there is nothing to lock. */
static int on_lock(void *generator)
{
	return 1;
}

static void on_unlock(void *generator)
{
}

static const OSSL_PARAM *on_gettable(void *generator, void *provider)
{
	static const OSSL_PARAM known[] = { OSSL_PARAM_size_t(OSSL_RAND_PARAM_MAX_REQUEST, NULL),
		OSSL_PARAM_int(OSSL_RAND_PARAM_STATE, NULL), OSSL_PARAM_uint(OSSL_RAND_PARAM_STRENGTH, NULL),
		OSSL_PARAM_END };

	return known;
}

static int on_get(void *generator, OSSL_PARAM params[])
{
	int ok = 1;

	for (OSSL_PARAM *p = params; p && p->key && ok; p++) {
		if (strcmp(p->key, OSSL_RAND_PARAM_MAX_REQUEST) == 0)
			ok = OSSL_PARAM_set_size_t(p, REQUEST_MAX);
		else if (strcmp(p->key, OSSL_RAND_PARAM_STATE) == 0)
			ok = OSSL_PARAM_set_int(p, EVP_RAND_STATE_READY);
		else if (strcmp(p->key, OSSL_RAND_PARAM_STRENGTH) == 0)
			ok = OSSL_PARAM_set_uint(p, STRENGTH);
	}
	return ok;
}

static const OSSL_DISPATCH generator_functions[] = { { OSSL_FUNC_RAND_NEWCTX, (void (*)(void))on_new },
	{ OSSL_FUNC_RAND_FREECTX, (void (*)(void))on_free },
	{ OSSL_FUNC_RAND_INSTANTIATE, (void (*)(void))on_instantiate },
	{ OSSL_FUNC_RAND_UNINSTANTIATE, (void (*)(void))on_uninstantiate },
	{ OSSL_FUNC_RAND_GENERATE, (void (*)(void))on_generate }, { OSSL_FUNC_RAND_RESEED, (void (*)(void))on_reseed },
	{ OSSL_FUNC_RAND_ENABLE_LOCKING, (void (*)(void))on_lock }, { OSSL_FUNC_RAND_LOCK, (void (*)(void))on_lock },
	{ OSSL_FUNC_RAND_UNLOCK, (void (*)(void))on_unlock },
	{ OSSL_FUNC_RAND_GETTABLE_CTX_PARAMS, (void (*)(void))on_gettable },
	{ OSSL_FUNC_RAND_GET_CTX_PARAMS, (void (*)(void))on_get }, { 0, NULL } };

static const OSSL_ALGORITHM *on_query(void *provider, int operation, int *no_cache)
{
	static const OSSL_ALGORITHM generators[] = {
		{ OWN_RANDOM_NAME, "provider=" PROVIDER, generator_functions, NULL }, { NULL, NULL, NULL, NULL }
	};

	*no_cache = 0;
	return operation == OSSL_OP_RAND ? generators : NULL;
}

static const OSSL_DISPATCH provider_functions[] = { { OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))on_query },
	{ 0, NULL } };

static int on_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out, void **provider)
{
	*out = provider_functions;
	*provider = &stateless;
	return 1;
}

int own_random_load(OSSL_LIB_CTX *library)
{
	if (OSSL_PROVIDER_add_builtin(library, PROVIDER, on_init) != 1 ||
		!OSSL_PROVIDER_try_load(library, PROVIDER, 1) ||
		RAND_set_DRBG_type(library, OWN_RANDOM_NAME, NULL, NULL, NULL) != 1)
		return CSSL_E_CRYPTO;
	return 0;
}
