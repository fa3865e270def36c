/* sess_obj_bytes.h: samples of SESS_OBJ as bytes, for the tests of them. */
#pragma once

#include <check.h>

#include "tests/unit/proto/sess_obj_samples.h"

#define BLOB_MAX 4096u

#define TLS13_AES_128 0x1301
#define TLS12_AES_128 0xc02f
#define TLS12_CHACHA  0xcca8

/* The sample of a suite; TLS_AES_128_GCM_SHA256 where it does not matter which. */
static inline void sample(struct sess_obj_sample *s, uint16_t suite)
{
	sess_obj_sample_fill(s, cipher_suite_find(suite), SAMPLE_BOTH);
}

static inline size_t encoded(const struct sess_obj *o, uint8_t out[static BLOB_MAX])
{
	ptrdiff_t len = sess_obj_encode(o, out, BLOB_MAX);

	ck_assert_int_gt(len, 0);
	return (size_t)len;
}
