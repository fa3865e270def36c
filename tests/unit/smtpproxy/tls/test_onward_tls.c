/* test_onward_tls.c: facts of TLS toward a receiver: how a handshake fails, and what our own lack of memory is. */
#include "smtpproxy/tls/onward_tls.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const uint8_t alert[] = { 0x15, 3, 3, 0, 2, 2, 40 }; /* handshake_failure */

#define NEVER 1000000u

static unsigned left = NEVER; /* allocations until memory ends */

static int has_memory(void)
{
	if (left == 0)
		return 0;
	left -= left < NEVER;
	return 1;
}

static void *scarce_malloc(size_t len, const char *file, int line)
{
	return has_memory() ? malloc(len) : NULL;
}

static void *scarce_realloc(void *p, size_t len, const char *file, int line)
{
	return has_memory() ? realloc(p, len) : NULL;
}

static void plain_free(void *p, const char *file, int line)
{
	free(p);
}

/* What the alert makes of a handshake, if memory ends behind @count allocations. */
static enum onward_tls_state take_alert(SSL_CTX *context, unsigned count)
{
	struct onward_tls *t = onward_tls_create(context, NULL, NULL);
	ck_assert_ptr_nonnull(t);
	left = count;
	const enum onward_tls_state state = onward_tls_take(t, alert, sizeof alert);
	left = NEVER;
	const char *words = ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE));
	ck_assert_str_eq(onward_tls_failure(t), state == ONWARD_TLS_STARVED ? "no memory" : words);
	onward_tls_destroy(t);
	return state;
}

START_TEST(an_alert_is_a_failure_of_tls)
{
	SSL_CTX *context = onward_tls_context("outward.ca", NULL, (char[64]){ 0 }, 64);
	ck_assert_int_eq(take_alert(context, NEVER), ONWARD_TLS_FAILED);
	SSL_CTX_free(context);
}
END_TEST

/* 0: there is none for the bytes that came. 1: there is none for OpenSSL to read them. */
START_TEST(lack_of_memory_is_no_failure_of_tls)
{
	SSL_CTX *context = onward_tls_context("outward.ca", NULL, (char[64]){ 0 }, 64);
	for (unsigned count = 0; count < 2; count++)
		ck_assert_int_eq(take_alert(context, count), ONWARD_TLS_STARVED);
	SSL_CTX_free(context);
}
END_TEST

START_TEST(no_receiver_may_begin_another_handshake)
{
	SSL_CTX *context = onward_tls_context("outward.ca", NULL, (char[64]){ 0 }, 64);
	ck_assert(SSL_CTX_get_options(context) & SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_free(context);
}
END_TEST

UNIT(onward_tls)
{
	const TTest *facts[] = {
		an_alert_is_a_failure_of_tls,
		lack_of_memory_is_no_failure_of_tls,
		no_receiver_may_begin_another_handshake,
	};
	if (CRYPTO_set_mem_functions(scarce_malloc, scarce_realloc, plain_free) != 1)
		return EXIT_FAILURE;
	return suite_run("onward_tls", facts, SUITE_LEN(facts));
}
