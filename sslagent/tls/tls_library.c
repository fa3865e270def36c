/* tls_library.c: the first call makes it, with two providers of ours: random bytes, and the default provider with fewer
 * ciphers. */
#include "sslagent/tls/tls_library.h"

#include <openssl/conf.h>
#include <openssl/core.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <sodium.h>
#include <string.h>
#include <strings.h>

#include "net/report/log.h"
#include "proto/error.h"
#include "sslagent/tls/own_provider.h"

/* As OpenSSL reads the file for the default context: it skips unknown parts. */
#define CONF_FLAGS (CONF_MFLAGS_DEFAULT_SECTION | CONF_MFLAGS_IGNORE_MISSING_FILE | CONF_MFLAGS_IGNORE_RETURN_CODES)

/* OpenSSL's secure heap: locked, not dumped, between guard pages, wiped when freed. OpenSSL 3.0 puts the private parts
 * of certificate keys there (RSA-2048: 900 bytes, P-256: 32) and those of key exchanges. A handshake keeps its key
 * until its end (32 to 64 bytes, some 3 KB while it signs). When it is full, handshakes fail: it has room for 60,000 at
 * a time. */
#define SECURE_HEAP_LEN  (4u * 1024 * 1024)
#define SECURE_BLOCK_MIN 32u

static OSSL_LIB_CTX *library;
static enum tls_algorithms best = TLS_ALGORITHMS_OPENSSL;

/* --- random bytes from libsodium, which has them from the kernel (net/memory/random_pool.h): a provider with one
 * generator (provider-rand(7)), which has no state and needs no seed. OpenSSL's own generators are three, chained for
 * each thread, over AES; a handshake asks them three times, for bytes that the kernel has ready. --- */

#define RANDOM_PROVIDER    "cssl-random"
#define RANDOM_STRENGTH    256u /* bits */
#define RANDOM_REQUEST_MAX ((size_t)65536)

static int stateless; /* what stands for a context */

static void *on_random_new(void *provider, void *parent, const OSSL_DISPATCH *of_parent)
{
	return &stateless;
}

static void on_random_free(void *generator)
{
}

/* Also for locks: each thread has a pool of its own, so there is nothing to lock. */
static int on_random_ready(void *generator)
{
	return 1;
}

static int on_random_instantiate(void *generator, unsigned strength, int prediction_resistance,
	const unsigned char *text, size_t text_len, const OSSL_PARAM params[])
{
	return strength <= RANDOM_STRENGTH;
}

static int on_random_generate(void *generator, unsigned char *out, size_t len, unsigned strength,
	int prediction_resistance, const unsigned char *more, size_t more_len)
{
	if (strength > RANDOM_STRENGTH)
		return 0;
	randombytes_buf(out, len);
	return 1;
}

static int on_random_get(void *generator, OSSL_PARAM params[])
{
	OSSL_PARAM *request = OSSL_PARAM_locate(params, OSSL_RAND_PARAM_MAX_REQUEST);
	OSSL_PARAM *state = OSSL_PARAM_locate(params, OSSL_RAND_PARAM_STATE);
	OSSL_PARAM *strength = OSSL_PARAM_locate(params, OSSL_RAND_PARAM_STRENGTH);

	return (!request || OSSL_PARAM_set_size_t(request, RANDOM_REQUEST_MAX)) &&
	       (!state || OSSL_PARAM_set_int(state, EVP_RAND_STATE_READY)) &&
	       (!strength || OSSL_PARAM_set_uint(strength, RANDOM_STRENGTH));
}

static const OSSL_DISPATCH random_functions[] = { { OSSL_FUNC_RAND_NEWCTX, (void (*)(void))on_random_new },
	{ OSSL_FUNC_RAND_FREECTX, (void (*)(void))on_random_free },
	{ OSSL_FUNC_RAND_INSTANTIATE, (void (*)(void))on_random_instantiate },
	{ OSSL_FUNC_RAND_UNINSTANTIATE, (void (*)(void))on_random_ready },
	{ OSSL_FUNC_RAND_GENERATE, (void (*)(void))on_random_generate },
	{ OSSL_FUNC_RAND_ENABLE_LOCKING, (void (*)(void))on_random_ready },
	{ OSSL_FUNC_RAND_GET_CTX_PARAMS, (void (*)(void))on_random_get }, { 0, NULL } };

static const OSSL_ALGORITHM *on_random_query(void *provider, int operation, int *no_cache)
{
	static const OSSL_ALGORITHM generators[] = {
		{ OWN_RANDOM_NAME, "provider=" RANDOM_PROVIDER, random_functions, NULL }, { NULL, NULL, NULL, NULL }
	};

	*no_cache = 0;
	return operation == OSSL_OP_RAND ? generators : NULL;
}

static int on_random_init(
	const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out, void **provider)
{
	static const OSSL_DISPATCH functions[] = {
		{ OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))on_random_query }, { 0, NULL }
	};

	*out = functions;
	*provider = &stateless;
	return 1;
}

/* Make it the generator of @l, which has made no random bytes yet. 0 or CSSL_E_CRYPTO. */
static int load_random(OSSL_LIB_CTX *l)
{
	return OSSL_PROVIDER_add_builtin(l, RANDOM_PROVIDER, on_random_init) == 1 &&
			       OSSL_PROVIDER_try_load(l, RANDOM_PROVIDER, 1) &&
			       RAND_set_DRBG_type(l, OWN_RANDOM_NAME, NULL, NULL, NULL) == 1
		       ? 0
		       : CSSL_E_CRYPTO;
}

/* --- the default provider with fewer ciphers: those of TLS. OpenSSL 3.0 walks the list of all names of a library
 * context each time it makes a context for a key, some eight times in a handshake, and two thirds of the default
 * provider's names are ciphers that TLS never had (OFB, XTS, key wrap). Each call goes to the default provider of
 * another library context, and so do the algorithms for what they need themselves. Only the table of ciphers is another
 * one. --- */

#define DEFAULT_PROVIDER "default"

/* By their first name. */
static const char *const ciphers_of_tls[] = { "AES-128-GCM", "AES-256-GCM", "ChaCha20-Poly1305", "AES-128-CCM",
	"AES-256-CCM", "AES-128-CBC", "AES-256-CBC", "AES-128-CBC-HMAC-SHA1", "AES-256-CBC-HMAC-SHA1",
	"AES-128-CBC-HMAC-SHA256", "AES-256-CBC-HMAC-SHA256", "ARIA-128-GCM", "ARIA-256-GCM", "CAMELLIA-128-CBC",
	"CAMELLIA-256-CBC", "DES-EDE3-CBC", "NULL" };
#define CIPHERS (sizeof ciphers_of_tls / sizeof ciphers_of_tls[0])

static OSSL_PROVIDER *complete; /* the default one, until the process ends */
static OSSL_ALGORITHM ciphers[CIPHERS + 1];

static bool is_of_tls(const char *names)
{
	const size_t len = strcspn(names, ":");

	for (size_t i = 0; i < CIPHERS; i++)
		if (strlen(ciphers_of_tls[i]) == len && strncasecmp(names, ciphers_of_tls[i], len) == 0)
			return true;
	return false;
}

static void tls_library_choose(const OSSL_ALGORITHM *all)
{
	size_t count = 0;

	for (; all && all->algorithm_names && count < CIPHERS; all++)
		if (is_of_tls(all->algorithm_names))
			ciphers[count++] = *all;
}

static const OSSL_ALGORITHM *on_lean_query(void *provider, int operation, int *no_cache)
{
	if (operation != OSSL_OP_CIPHER)
		return OSSL_PROVIDER_query_operation(complete, operation, no_cache);
	*no_cache = 0;
	return ciphers;
}

static int on_lean_get(void *provider, OSSL_PARAM params[])
{
	return OSSL_PROVIDER_get_params(complete, params);
}

static int on_lean_capabilities(void *provider, const char *capability, OSSL_CALLBACK *callback, void *callback_ctx)
{
	return OSSL_PROVIDER_get_capabilities(complete, capability, callback, callback_ctx);
}

static int on_lean_init(
	const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out, void **provider)
{
	static const OSSL_DISPATCH functions[] = { { OSSL_FUNC_PROVIDER_QUERY_OPERATION,
							   (void (*)(void))on_lean_query },
		{ OSSL_FUNC_PROVIDER_GET_PARAMS, (void (*)(void))on_lean_get },
		{ OSSL_FUNC_PROVIDER_GET_CAPABILITIES, (void (*)(void))on_lean_capabilities }, { 0, NULL } };

	*out = functions;
	*provider = OSSL_PROVIDER_get0_provider_ctx(complete);
	return 1;
}

/* @whole: a library context for the default provider alone. 0 or CSSL_E_CRYPTO. */
static int load_lean(OSSL_LIB_CTX *whole)
{
	int no_cache = 0;

	complete = OSSL_PROVIDER_load(whole, DEFAULT_PROVIDER);
	if (!complete)
		return CSSL_E_CRYPTO;
	tls_library_choose(OSSL_PROVIDER_query_operation(complete, OSSL_OP_CIPHER, &no_cache));
	if (OSSL_PROVIDER_add_builtin(library, LEAN_PROVIDER_NAME, on_lean_init) != 1)
		return CSSL_E_CRYPTO;
	return OSSL_PROVIDER_load(library, LEAN_PROVIDER_NAME) ? 0 : CSSL_E_CRYPTO;
}

static int count_another(OSSL_PROVIDER *provider, void *others)
{
	*(int *)others += strcmp(OSSL_PROVIDER_get0_name(provider), DEFAULT_PROVIDER) != 0;
	return 1;
}

/* Does openssl.cnf name no providers but the default one? Others (FIPS, tokens) stand as they are. */
static bool may_be_lean(void)
{
	int others = 0;

	OSSL_PROVIDER_do_all(NULL, count_another, &others);
	return others == 0;
}

/* --- the library --- */

int tls_library_begin(void)
{
	return OPENSSL_init_crypto(OPENSSL_INIT_NO_ADD_ALL_CIPHERS, NULL) == 1 ? 0 : CSSL_E_CRYPTO;
}

static void add_own_provider(void)
{
	int r = own_provider_load(library);

	if (r == 0)
		r = own_provider_check(library);
	if (r == 0)
		best = TLS_ALGORITHMS_OWN;
	else
		log_event(LOG_ERROR, NULL, "own HMAC, key schedules and X25519 are not used",
			"cause=\"%s\" instead=\"%s\"",
			r == CSSL_E_MISMATCH ? "they give other results than OpenSSL's" : "OpenSSL does not take them",
			"OpenSSL's own");
}

static void tell_of_more_cost(const char *what)
{
	log_event(LOG_WARNING, NULL, what,
		"cause=\"OpenSSL takes no other way\" effect=\"handshakes cost a little more\"");
}

/* The generator comes first, because openssl.cnf may name another one. */
static void configure_with_own_random(OSSL_LIB_CTX *l)
{
	if (load_random(l) < 0)
		tell_of_more_cost("random bytes come from OpenSSL's generators");
	CONF_modules_load_file_ex(l, NULL, NULL, CONF_FLAGS);
}

static void configure_lean(void)
{
	OSSL_LIB_CTX *whole = OSSL_LIB_CTX_new();

	configure_with_own_random(library);
	if (whole)
		configure_with_own_random(whole);
	if (!whole || load_lean(whole) < 0)
		tell_of_more_cost("all of OpenSSL's ciphers are loaded");
}

static void tls_library_make(void)
{
#ifndef CSSL_SANITIZED /* the leak checker sees no pointers there */
	if (CRYPTO_secure_malloc_init(SECURE_HEAP_LEN, SECURE_BLOCK_MIN) != 1)
		log_event(LOG_WARNING, NULL, "private keys may be swapped out",
			"limit=RLIMIT_MEMLOCK remedy=\"raise it (systemd: LimitMEMLOCK)\"");
#endif
	library = OSSL_LIB_CTX_new();
	if (!library)
		return;
	if (may_be_lean())
		configure_lean();
	else
		CONF_modules_load_file_ex(library, NULL, NULL, CONF_FLAGS);
	add_own_provider();
}

OSSL_LIB_CTX *tls_library(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, tls_library_make);
	return library;
}

const char *tls_library_query(enum tls_algorithms a)
{
	return a == TLS_ALGORITHMS_OWN ? "?provider=" OWN_PROVIDER_NAME : "provider!=" OWN_PROVIDER_NAME;
}

enum tls_algorithms tls_library_best(void)
{
	tls_library();
	return best;
}
