/* test_framed_breach.c: facts of a link that breaks its own rules: batches that were changed, noise, frames that an
 * owner refuses; and of the bytes of a sealed link that an observer sees. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "net/stream/framed.h"
#include "proto/error.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

#define FRAMES_MAX 64

/* An end of a link that writes its calls down. */
struct side {
	struct framed framed; /* first */
	unsigned frames, turns, ends, closed;
	int end_error;
	uint32_t stream[FRAMES_MAX];
	uint8_t type[FRAMES_MAX], flags[FRAMES_MAX];
	size_t len[FRAMES_MAX];
	uint8_t fill[FRAMES_MAX]; /* the value of all bytes of the payload; -1 if they differ */
	enum { TAKE, REFUSE } at_frame;
};

static struct side left, right;
static int raw; /* the descriptor of the left side, where a test speaks for it */

static int on_frame(struct framed *f, const struct frame *frame, uint8_t *payload)
{
	struct side *s = (struct side *)f;
	unsigned n = s->frames++;

	ck_assert_uint_lt(n, FRAMES_MAX);
	ck_assert_uint_eq(s->closed + s->ends, 0);
	s->stream[n] = frame->stream;
	s->type[n] = frame->type;
	s->flags[n] = frame->flags;
	s->len[n] = frame->len;
	s->fill[n] = frame->len ? payload[0] : 0;
	for (size_t i = 1; i < frame->len; i++)
		if (payload[i] != payload[0])
			ck_abort_msg("byte %zu of frame %u is wrong", i, n);
	memset(payload, 0xaa, frame->len); /* may be changed in place */
	return s->at_frame == REFUSE ? CSSL_E_STATE : 0;
}

static void on_turn(struct framed *f)
{
	((struct side *)f)->turns++;
}

static void on_end(struct framed *f, int error)
{
	struct side *s = (struct side *)f;

	s->ends++;
	s->end_error = error;
}

static void on_closed(struct framed *f)
{
	((struct side *)f)->closed++;
}

static const struct framed_ops side_ops = {
	.on_frame = on_frame, .on_turn = on_turn, .on_end = on_end, .on_closed = on_closed
};

static struct link_keys left_keys, right_keys;

static void make_keys(enum link_protection protection)
{
	left_keys = (struct link_keys){ .protection = protection, .aead = AEAD_AES_256_GCM };
	randombytes_buf(left_keys.send, sizeof left_keys.send);
	randombytes_buf(left_keys.receive, sizeof left_keys.receive);
	right_keys = left_keys;
	memcpy(right_keys.send, left_keys.receive, sizeof right_keys.send);
	memcpy(right_keys.receive, left_keys.send, sizeof right_keys.receive);
}

static void side_open(struct side *s, int fd, const struct link_keys *keys)
{
	memset(s, 0, sizeof *s);
	ck_assert_int_eq(framed_open(&s->framed, w, &side_ops, fd, keys, NULL, 0), 0);
}

static void link_open_pair(enum link_protection protection)
{
	int fds[2];

	make_keys(protection);
	socket_pair(OVER_UNIX, fds);
	side_open(&left, fds[0], &left_keys);
	side_open(&right, fds[1], &right_keys);
}

/* The test itself is the left side. */
static void link_open_raw(enum link_protection protection)
{
	int fds[2];

	make_keys(protection);
	socket_pair(OVER_UNIX, fds);
	raw = fds[0];
	side_open(&right, fds[1], &right_keys);
}

static void side_close(struct side *s)
{
	framed_close(&s->framed);
	wait_until(s->closed);
	ck_assert_uint_eq(s->closed, 1);
}

static void close_pair(void)
{
	side_close(&left);
	side_close(&right);
}

static void close_raw(void)
{
	side_close(&right);
	close(raw);
}

static enum link_protection protection_of(int i)
{
	return i ? LINK_SEALED : LINK_TRUSTED;
}

static void send_fill(struct side *s, uint32_t stream, size_t len, uint8_t fill)
{
	uint8_t *room = framed_reserve(&s->framed, len);

	ck_assert_ptr_nonnull(room);
	memset(room, fill, len);
	framed_commit(&s->framed, stream, FRAME_DATA, FRAME_CHECKPOINT, len);
}

static void expect_fill(unsigned n, uint32_t stream, size_t len, uint8_t fill)
{
	ck_assert_uint_eq(right.stream[n], stream);
	ck_assert_uint_eq(right.type[n], FRAME_DATA);
	ck_assert_uint_eq(right.flags[n], FRAME_CHECKPOINT);
	ck_assert_uint_eq(right.len[n], len);
	ck_assert_uint_eq(right.fill[n], len ? fill : 0);
}

/* A frame as the bytes of a trusted link. */
static size_t frame_bytes(uint8_t *out, uint32_t stream, enum frame_type type, size_t len, uint8_t fill)
{
	frame_header_write(out, stream, type, 0, (uint16_t)len);
	memset(out + FRAME_HEADER_LEN, fill, len);
	return FRAME_HEADER_LEN + len;
}

/* --- frames --- */

/* A batch holds 64 KiB of frames: one byte more begins the next. */
START_TEST(frames_at_the_edges_of_a_batch_arrive)
{
	static const int around[] = { -FRAME_HEADER_LEN - 2, -FRAME_HEADER_LEN - 1, -FRAME_HEADER_LEN, -2, -1, 0, 1, 2,
		FRAME_HEADER_LEN };
	size_t first = 40000;
	size_t second = (size_t)(BATCH_PLAINTEXT_MAX - 2 * FRAME_HEADER_LEN - first + (size_t)around[_i]);

	link_open_pair(LINK_SEALED);
	send_fill(&left, 1, first, 1);
	send_fill(&left, 2, second, 2);
	send_fill(&left, 3, 5, 3);
	wait_until(right.frames == 3);
	expect_fill(0, 1, first, 1);
	expect_fill(1, 2, second, 2);
	expect_fill(2, 3, 5, 3);
	close_pair();
}
END_TEST

START_TEST(a_sealed_link_shows_nothing_of_its_frames)
{
	static const char secret[] = "a plaintext that must not be seen";
	uint8_t wire[512];
	int end;
	ssize_t n = 0;

	link_open_raw(LINK_SEALED);
	ck_assert_int_eq(framed_send(&right.framed, 7, FRAME_DATA, 0, secret, sizeof secret), 0);
	wait_until((n = read_some(raw, wire, sizeof wire, &end)) > 0);
	ck_assert_uint_eq((size_t)n, BATCH_HEADER_LEN + FRAME_HEADER_LEN + sizeof secret + BATCH_TAG_LEN);
	ck_assert_ptr_null(memmem(wire, (size_t)n, secret, 8));
	close_raw();
}
END_TEST

START_TEST(frames_of_one_turn_leave_as_one_batch)
{
	uint8_t wire[4096];
	int end;
	ssize_t n = 0;

	link_open_raw(LINK_SEALED);
	for (unsigned i = 0; i < 20; i++)
		send_fill(&right, i + 1, 30, 1);
	wait_until((n = read_some(raw, wire, sizeof wire, &end)) > 0);
	ck_assert_uint_eq((size_t)n, BATCH_HEADER_LEN + 20 * (FRAME_HEADER_LEN + 30) + BATCH_TAG_LEN);
	close_raw();
}
END_TEST

/* --- garbage --- */

static void expect_breach(void)
{
	wait_until(right.ends);
	unsigned frames = right.frames;
	turns(10);
	ck_assert_uint_eq(right.ends, 1);
	ck_assert_uint_eq(right.frames, frames);
	close_raw();
}

START_TEST(frames_before_a_breach_are_delivered)
{
	uint8_t bytes[2 * FRAME_HEADER_LEN + 20];
	size_t len = frame_bytes(bytes, 1, FRAME_DATA, 20, 1);

	link_open_raw(LINK_TRUSTED);
	frame_header_write(bytes + len, 0, FRAME_DATA, 0, 20); /* DATA needs a stream */
	write_all(raw, bytes, sizeof bytes);
	expect_breach();
	ck_assert_uint_eq(right.frames, 1);
	ck_assert_int_eq(right.end_error, CSSL_E_RANGE);
}
END_TEST

/* A batch as the left side would seal it; its length. */
static size_t seal_batch(uint8_t *out, const uint8_t *plain, size_t len, struct batch_cipher *cipher)
{
	memcpy(out + BATCH_HEADER_LEN, plain, len);
	ck_assert_int_eq(batch_seal(cipher, out, len), 0);
	return BATCH_HEADER_LEN + len + BATCH_TAG_LEN;
}

static size_t some_frames(uint8_t *out)
{
	size_t len = frame_bytes(out, 1, FRAME_DATA, 20, 1);

	return len + frame_bytes(out + len, 2, FRAME_DATA, 30, 2);
}

enum { FLIP_HEADER, FLIP_TEXT, FLIP_TAG, REPLAY, SWAP, HALF_A_FRAME, FOREIGN_KEY, BREACHES };

START_TEST(a_batch_that_is_not_as_it_was_sealed_is_a_breach)
{
	uint8_t plain[128], wire[1024], key[KEY_LEN];
	size_t plain_len = some_frames(plain);

	link_open_raw(LINK_SEALED);
	randombytes_buf(key, sizeof key);
	struct batch_cipher *cipher =
		batch_cipher_create(left_keys.aead, _i == FOREIGN_KEY ? key : left_keys.send, BATCHES_PER_KEY);
	size_t len = seal_batch(wire, plain, _i == HALF_A_FRAME ? plain_len - 1 : plain_len, cipher);
	size_t second = seal_batch(wire + len, plain, plain_len, cipher);
	batch_cipher_destroy(cipher);

	switch (_i) {
	case FLIP_HEADER: wire[BATCH_HEADER_LEN - 1] ^= 1; break;
	case FLIP_TEXT: wire[BATCH_HEADER_LEN + 3] ^= 1; break;
	case FLIP_TAG: wire[len - 1] ^= 1; break;
	case REPLAY: memcpy(wire + len, wire, len); break;
	case SWAP: memmove(wire, wire + len, second); break;
	default: break;
	}
	write_all(raw, wire, len + (_i == SWAP ? 0 : second));
	expect_breach();
	ck_assert_int_eq(right.end_error, _i == HALF_A_FRAME ? CSSL_E_TRUNCATED : CSSL_E_AUTH);
	ck_assert_uint_eq(right.frames, _i == REPLAY ? 2 : _i == HALF_A_FRAME ? 1 : 0);
}
END_TEST

START_TEST(noise_never_becomes_a_frame)
{
	uint8_t noise[4096];

	link_open_raw(protection_of(_i));
	memset(noise, 0xff, sizeof noise);
	write_all(raw, noise, sizeof noise);
	expect_breach();
	ck_assert_uint_eq(right.frames, 0);
}
END_TEST

/* --- the end --- */

START_TEST(an_owner_that_refuses_a_frame_hears_the_end_with_its_reason)
{
	link_open_pair(protection_of(_i));
	right.at_frame = REFUSE;
	send_fill(&left, 1, 10, 1);
	send_fill(&left, 2, 10, 2);
	wait_until(right.ends);
	ck_assert_int_eq(right.end_error, CSSL_E_STATE);
	ck_assert_uint_eq(right.frames, 1);
	close_pair();
}
END_TEST

START_TEST(a_partial_frame_at_the_end_is_no_frame)
{
	uint8_t bytes[FRAME_HEADER_LEN + 20];
	size_t len = frame_bytes(bytes, 1, FRAME_DATA, 20, 1);

	link_open_raw(LINK_TRUSTED);
	write_all(raw, bytes, len - 1);
	turns(3);
	close(raw);
	wait_until(right.ends);
	ck_assert_uint_eq(right.frames, 0);
	side_close(&right);
}
END_TEST

START_TEST(a_descriptor_that_is_no_connection_is_refused_and_closed)
{
	unsigned before = open_descriptors();
	int fd = dup(STDERR_FILENO);
	struct side s;

	memset(&s, 0, sizeof s);
	make_keys(LINK_TRUSTED);
	(void)close(fd);
	ck_assert_int_lt(framed_open(&s.framed, w, &side_ops, fd, &left_keys, NULL, 0), 0);
	ck_assert_uint_eq(open_descriptors(), before);
	ck_assert_uint_eq(s.closed, 0);
}
END_TEST

static void setup(void)
{
	ck_assert_int_ge(sodium_init(), 0);
	setup_worker();
}

UNIT(framed_breach)
{
	Suite *suite = suite_create("framed_breach");
	TCase *t = tcase_create("framed_breach");

	tcase_add_checked_fixture(t, setup, teardown_worker);
	tcase_add_loop_test(t, frames_at_the_edges_of_a_batch_arrive, 0, 9);
	tcase_add_test(t, a_sealed_link_shows_nothing_of_its_frames);
	tcase_add_test(t, frames_of_one_turn_leave_as_one_batch);
	tcase_add_test(t, frames_before_a_breach_are_delivered);
	tcase_add_loop_test(t, a_batch_that_is_not_as_it_was_sealed_is_a_breach, 0, BREACHES);
	tcase_add_loop_test(t, noise_never_becomes_a_frame, 0, 2);
	tcase_add_loop_test(t, an_owner_that_refuses_a_frame_hears_the_end_with_its_reason, 0, 2);
	tcase_add_test(t, a_partial_frame_at_the_end_is_no_frame);
	tcase_add_test(t, a_descriptor_that_is_no_connection_is_refused_and_closed);
	suite_add_tcase(suite, t);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
