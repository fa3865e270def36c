/* tls_library.c: the first call makes it. */
#include "sslagent/tls/tls_library.h"

#include <openssl/conf.h>
#include <openssl/crypto.h>
#include <pthread.h>

#include "net/log.h"
#include "proto/error.h"
#include "sslagent/tls/lean_provider.h"
#include "sslagent/tls/own_provider.h"
#include "sslagent/tls/own_random.h"

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

static void configure(OSSL_LIB_CTX *l)
{
	CONF_modules_load_file_ex(l, NULL, NULL, CONF_FLAGS);
}

/* The generator comes first, because openssl.cnf may name another one. */
static void configure_with_own_random(OSSL_LIB_CTX *l)
{
	if (own_random_load(l) < 0)
		tell_of_more_cost("random bytes come from OpenSSL's generators");
	configure(l);
}

static void configure_lean(void)
{
	OSSL_LIB_CTX *whole = OSSL_LIB_CTX_new();

	configure_with_own_random(library);
	if (whole)
		configure_with_own_random(whole);
	if (!whole || lean_provider_load(library, whole) < 0)
		tell_of_more_cost("all of OpenSSL's ciphers are loaded");
}

static void make(void)
{
#ifndef CSSL_SANITIZED /* the leak checker sees no pointers there */
	if (CRYPTO_secure_malloc_init(SECURE_HEAP_LEN, SECURE_BLOCK_MIN) != 1)
		log_event(LOG_WARNING, NULL, "private keys may be swapped out",
			"limit=RLIMIT_MEMLOCK remedy=\"raise it (systemd: LimitMEMLOCK)\"");
#endif
	library = OSSL_LIB_CTX_new();
	if (!library)
		return;
	if (lean_provider_may_load())
		configure_lean();
	else
		configure(library);
	add_own_provider();
}

OSSL_LIB_CTX *tls_library(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make);
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
