/* test_wiping.c: memory that proto/ gives back to the allocator has no key in it. All of proto/ allocates by
 * libcrypto, whose allocator is replaced here by one that searches each block before it is freed. */
#include <malloc.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "proto/batch.h"
#include "proto/datagram.h"
#include "proto/opening.h"
#include "proto/sealed_copy.h"
#include "tests/unit/proto/sess_obj_samples.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define HEX "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* The bytes that must not be found, and how often they were. */
static struct {
	const uint8_t *secret;
	size_t len;
	unsigned freed, found;
} watch;

static void *watched_malloc(size_t len, const char *file, int line)
{
	return malloc(len);
}

static void *watched_realloc(void *block, size_t len, const char *file, int line)
{
	return realloc(block, len);
}

static void watched_free(void *block, const char *file, int line)
{
	if (block && watch.len > 0) {
		watch.freed++;
		watch.found += memmem(block, malloc_usable_size(block), watch.secret, watch.len) != NULL;
	}
	free(block);
}

static void watch_for(const void *secret, size_t len)
{
	watch.secret = secret;
	watch.len = len;
	watch.freed = watch.found = 0;
}

static void check_wiped(void)
{
	watch.len = 0;
	ck_assert_uint_gt(watch.freed, 0);
	ck_assert_uint_eq(watch.found, 0);
}

static void ring_make(struct key_ring *ring)
{
	static const char text[] = "k1 " HEX "\n";
	unsigned line;

	ck_assert_int_eq(key_ring_parse(text, sizeof(text) - 1, ring, &line), 0);
}

START_TEST(the_watch_sees_a_secret_that_is_not_wiped)
{
	static const char secret[] = "this is a secret";
	char *block = OPENSSL_malloc(64);

	watch_for(secret, sizeof(secret));
	memcpy(block + 8, secret, sizeof(secret));
	OPENSSL_free(block);
	ck_assert_uint_eq(watch.freed, 1);
	ck_assert_uint_eq(watch.found, 1);
}
END_TEST

START_TEST(imported_objects_are_wiped_small_and_large)
{
	static uint8_t blob[SESS_OBJ_LEN_MAX], der[SESSION_DER_MAX];
	struct sess_obj_sample s;
	struct sess_obj out;

	for (unsigned large = 0; large < 2; large++) {
		sess_obj_sample_fill(&s, cipher_suite_find(0x1302), SAMPLE_BOTH);
		if (large) {
			s.object.session = der;
			s.object.session_len = sizeof(der);
		}
		watch_for(s.live.client_write.secret, 16);
		ptrdiff_t len = sess_obj_encode(&s.object, blob, sizeof(blob));
		ck_assert_int_eq(sess_obj_decode(blob, (size_t)len, &out), 0);
		sess_obj_destroy(&out);
		check_wiped();
	}
}
END_TEST

START_TEST(refused_objects_are_wiped)
{
	static uint8_t blob[SESS_OBJ_LEN_MAX], der[SESSION_DER_MAX];
	struct sess_obj_sample s;
	struct sess_obj out;

	sess_obj_sample_fill(&s, cipher_suite_find(0x1302), SAMPLE_BOTH);
	s.object.session = der;
	s.object.session_len = sizeof(der);
	watch_for(s.live.client_write.secret, 16);
	ptrdiff_t len = sess_obj_encode(&s.object, blob, sizeof(blob));
	blob[1] = SESS_OBJ_FORMAT_NEXT + 1;
	ck_assert_int_lt(sess_obj_decode(blob, (size_t)len, &out), 0);
	check_wiped();
}
END_TEST

START_TEST(opened_copies_are_wiped)
{
	struct sess_obj_sample s;
	struct sess_obj out;
	struct key_ring ring;
	uint8_t copy[4096];
	uint16_t epoch;

	ring_make(&ring);
	sess_obj_sample_fill(&s, cipher_suite_find(0x1302), SAMPLE_LIVE);
	ptrdiff_t len = sealed_copy_seal(&ring, &s.object, copy, sizeof(copy));
	ck_assert_int_gt(len, 0);
	watch_for(s.live.client_write.secret, 16);
	ck_assert_int_eq(sealed_copy_open(&ring, &s.live.connection, s.object.facts.listener, copy, (size_t)len, 0,
				 &out, &epoch),
		0);
	sess_obj_destroy(&out);
	check_wiped();
}
END_TEST

START_TEST(keys_of_batches_and_datagrams_are_wiped)
{
	static const uint8_t key[AEAD_SECRET_LEN] = "a secret of exactly thirty-two b";

	for (enum aead aead = AEAD_AES_256_GCM; aead <= AEAD_CHACHA20_POLY1305; aead++) {
		watch_for(key, 16);
		batch_cipher_destroy(batch_cipher_create(aead, key, BATCHES_PER_KEY));
		check_wiped();
		watch_for(key, 16);
		datagram_key_destroy(datagram_key_create(1, aead, key));
		check_wiped();
	}
}
END_TEST

START_TEST(openings_are_wiped)
{
	struct link_hello mine = { .version_min = 1,
		.version_max = 1,
		.role = LINK_ROLE_AGENT,
		.protection = LINK_SEALED,
		.aead = AEAD_AES_256_GCM,
		.name = "agent-1",
		.id_check_key = "the check key 16" };
	struct key_ring ring;

	ring_make(&ring);
	watch_for(mine.id_check_key, sizeof(mine.id_check_key));
	opening_destroy(opening_answer(&ring, &mine, LINK_ROLE_RAGENT));
	check_wiped();
}
END_TEST

UNIT(wiping)
{
	const TTest *const facts[] = {
		the_watch_sees_a_secret_that_is_not_wiped,
		imported_objects_are_wiped_small_and_large,
		refused_objects_are_wiped,
		opened_copies_are_wiped,
		keys_of_batches_and_datagrams_are_wiped,
		openings_are_wiped,
	};
	if (CRYPTO_set_mem_functions(watched_malloc, watched_realloc, watched_free) != 1)
		return EXIT_FAILURE;
	return suite_run("wiping", facts, SUITE_LEN(facts));
}
