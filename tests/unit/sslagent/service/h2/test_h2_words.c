/* test_h2_words.c: facts of what the agent says itself between the frames of HTTP/2, and of what it changes. */
#include <stdio.h>

#include "sslagent/service/h2/h2_follower.h"
#include "tests/unit/sslagent/service/h2/h2_follow.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

START_TEST(who_winds_down_asks_for_no_more_streams_once)
{
	struct h2_follower *h = followed(BEGUN ">H1e");

	must_say(h, "");
	h2_wind_down(h);
	h = moved(h);
	must_say(h, "p G2147483647/0 ");
	must_say(h, "");
	follow(h, ">H3e <H1e");
	ck_assert_uint_eq(h->streams.count, 1); /* what came meanwhile is answered */
	follow(h, "<H3e");
	ck_assert(!h2_is_idle(h)); /* a request may be on its way */
	follow(h, ">pa");
	ck_assert(h2_is_idle(h));
	ck_assert(!h2_said_last(h));
	size_t len;
	char said[64];
	const uint8_t *words = h2_farewell(h, H2_NO_ERROR, &len);
	read_frames(words, len, said);
	ck_assert_str_eq(said, "G3/0 ");
	h2_follower_destroy(&blocks, h);
}
END_TEST

START_TEST(a_backend_that_said_goaway_needs_no_other)
{
	struct h2_follower *h = followed(BEGUN ">H1e <G1");

	h2_wind_down(h);
	must_say(h, "");
	ck_assert(!h2_said_last(h));
	follow(h, "<H1e");
	ck_assert(h2_said_last(h));
	h2_follower_destroy(&blocks, h);
}
END_TEST

/* The backend's bytes come in pieces of @_i; the words have to go between two frames that are no block. */
START_TEST(words_are_said_between_two_frames_only)
{
	struct h2_follower *h = followed(BEGUN ">H1e >H3e <H1");
	const char *script = "<D1 <H1ec <C1";
	uint8_t bytes[3 * H2_SCRIPT_FRAME_MAX], frame[H2_SCRIPT_FRAME_MAX];
	size_t len = 0, used = 0, first_len = 0, words_len;
	char direction;

	for (size_t n; (n = h2_script_next(&script, &direction, frame)) > 0; len += n) {
		memcpy(bytes + len, frame, n);
		first_len = first_len ? first_len : n;
	}
	size_t whole = len, begin = (size_t)_i;
	h2_from_backend(h, bytes, begin);
	h2_wind_down(h);
	for (used = begin; !h2_words(h, &words_len) && used < whole;) {
		size_t n = h2_until_words(h, bytes + used, whole - used);
		ck_assert_uint_gt(n, 0);
		h2_from_backend(h, bytes + used, n);
		used += n;
	}
	ck_assert_uint_eq(used, begin == 0 ? 0 : begin <= first_len ? first_len : whole);
	must_say(h, "p G2147483647/0 ");
	h2_follower_destroy(&blocks, h);
}
END_TEST

START_TEST(a_stranded_client_is_refused_whatever_it_asks)
{
	struct h2_follower *h = followed("=>W >p >S");
	size_t len;
	char said[64];

	h2_wind_down(h);
	must_say(h, "G1/0 ");
	must_say(h, "");
	follow(h, ">H21e >H25c >C25 >H27 >H29");
	ck_assert(h->newest);
	must_say(h, "R21/7 R25/7 R27/7 ");
	must_say(h, "R29/7 ");
	must_say(h, "");
	const uint8_t *words = h2_farewell(h, H2_NO_ERROR, &len);
	read_frames(words, len, said);
	ck_assert_str_eq(said, "");
	h2_follower_destroy(&blocks, h);
}
END_TEST

/* It may read nothing before its next request, and then find the GOAWAY too early. */
START_TEST(an_idle_client_is_asked_to_go_when_it_answers_a_ping)
{
	struct h2_follower *h = followed(BEGUN ">H1e <H1e");

	h2_wind_down(h);
	must_say(h, "p ");
	must_say(h, "");
	h2_wind_down(h);
	must_say(h, "");
	ck_assert(!h2_is_idle(h));
	follow(h, ">pa");
	ck_assert(!h2_is_idle(h));
	must_say(h, "p G2147483647/0 ");
	ck_assert(!h2_is_idle(h));
	follow(h, ">pa");
	ck_assert(h2_is_idle(h));
	must_say(h, "");
	h2_follower_destroy(&blocks, h);
}
END_TEST

/* --- what changes on its way --- */

/* Says the client's words in pieces of @step bytes. Returns what the backend gets. */
static size_t to_backend(struct h2_follower *h, const char *script, size_t step, uint8_t *out)
{
	uint8_t frame[H2_SCRIPT_FRAME_MAX];
	struct service_outgoing p;
	size_t got = 0;
	char direction;

	for (size_t len; (len = h2_script_next(&script, &direction, frame)) > 0;) {
		for (size_t used = 0, n; used < len; used += n) {
			n = h2_from_client(h, frame + used, len - used < step ? len - used : step, &p);
			memcpy(out + got, frame + used, p.len);
			if (p.words_len > 0)
				memcpy(out + got + p.len, p.words, p.words_len);
			got += p.len + p.words_len;
		}
	}
	return got;
}

static void fill(struct h2_follower *h, unsigned streams)
{
	char word[16];

	for (unsigned i = 0; i < streams; i++) {
		snprintf(word, sizeof word, ">H%ue", 2 * i + 1);
		follow(h, word);
	}
}

/* Every piece of @_i bytes. The block of the refused stream reaches the backend's header tables, but is no request. */
START_TEST(the_stream_above_the_limit_is_refused_and_no_other)
{
	static const char *const blocks_of_513[] = { ">H513", ">H513c >C513c >C513" };
	static const uint8_t spoiler[] = { 0, 0, 5, H2_CONTINUATION, H2_END_HEADERS, 0, 0, 2, 1, 0, 2, ':', 'x', 0 };

	for (int i = 0; i < 2; i++) {
		struct h2_follower *h = followed(BEGUN);
		uint8_t got[4 * H2_SCRIPT_FRAME_MAX];
		fill(h, H2_STREAMS_MAX);
		must_say(h, "");
		size_t len = to_backend(h, blocks_of_513[i], (size_t)_i, got);
		ck_assert_uint_eq(len, 16 + 32u * (unsigned)i + sizeof spoiler);
		ck_assert_uint_eq(got[4], 0); /* the block is not over */
		ck_assert_uint_eq(got[len - sizeof spoiler - 12], 0);
		ck_assert_mem_eq(got + len - sizeof spoiler, spoiler, sizeof spoiler);
		ck_assert_uint_eq(to_backend(h, ">D513e", (size_t)_i, got), 16);
		must_say(h, "R513/7 ");
		must_say(h, "");
		ck_assert_uint_eq(h->streams.count, H2_STREAMS_MAX);
		follow(h, "<R513 <H1e >H515e");
		must_say(h, "");
		ck_assert_uint_eq(h->streams.count, H2_STREAMS_MAX);
		ck_assert_int_eq(h->phase, H2_FOLLOWS);
		h2_follower_destroy(&blocks, h);
	}
}
END_TEST

START_TEST(a_thousand_streams_at_once_are_refused_one_by_one)
{
	struct h2_follower *h = followed(BEGUN);
	char expected[64];

	fill(h, H2_STREAMS_MAX + 1000);
	for (unsigned i = H2_STREAMS_MAX; i < H2_STREAMS_MAX + 999; i += 3) {
		snprintf(expected, sizeof expected, "R%u/7 R%u/7 R%u/7 ", 2 * i + 1, 2 * i + 3, 2 * i + 5);
		must_say(h, expected);
	}
	must_say(h, "R2511/7 ");
	ck_assert_int_eq(h->phase, H2_FOLLOWS);
	h2_follower_destroy(&blocks, h);
}
END_TEST

static size_t gives(struct h2_follower *h, const uint8_t *data, size_t len, uint8_t *out)
{
	memcpy(out, data, len);
	h2_from_backend(h, data, len);
	return len;
}

/* What the client gets when the backend's words come in pieces of @step bytes. */
static size_t to_client(struct h2_follower *h, const char *script, size_t step, uint8_t *out)
{
	uint8_t frame[H2_SCRIPT_FRAME_MAX];
	size_t got = 0, words_len;
	char direction;

	for (size_t len; (len = h2_script_next(&script, &direction, frame)) > 0;) {
		for (size_t at = 0; at < len; at += step) {
			const size_t piece = len - at < step ? len - at : step;
			for (size_t used = 0, before = 1; before != used;) {
				before = used;
				used += h2_hold(h, frame + at + used, piece - used);
				for (const uint8_t *words; (words = h2_words(h, &words_len)) != NULL;)
					got += gives(h, words, words_len, out + got);
				const size_t n = h2_until_words(h, frame + at + used, piece - used);
				used += gives(h, frame + at + used, n, out + got);
				got += n;
			}
		}
	}
	return got;
}

static const struct {
	const char *settings;
	uint32_t told; /* the last value that the client sees */
} limits[] = { { "<S", 256 }, { "<S100", 100 }, { "<S256", 256 }, { "<S257", 256 }, { "<S4294967295", 256 },
	{ "<S0", 256 }, { "<S100 <S", 100 }, { "<S100 <D1 <S300", 256 } };

START_TEST(settings_end_with_the_limit_of_streams)
{
	for (size_t step = 1; step < 24; step++) {
		struct h2_follower *h = followed(">P >S");
		uint8_t got[4 * H2_SCRIPT_FRAME_MAX];
		size_t len = to_client(h, limits[_i].settings, step, got);
		const uint8_t *last = got + len - 6;
		ck_assert_uint_eq(wire_load_u16(last), 3);
		ck_assert_uint_eq(wire_load_u32(last + 2), limits[_i].told);
		for (size_t at = 0; at < len; at += 9 + wire_load_u16(got + at + 1)) /* whole frames */
			ck_assert_uint_le(at + 9 + wire_load_u16(got + at + 1), len);
		ck_assert(!h2_is_amid_answer(h));
		h2_follower_destroy(&blocks, h);
	}
}
END_TEST

START_TEST(an_acknowledgement_changes_nothing_and_a_piece_of_a_header_is_held)
{
	for (size_t step = 1; step < 24; step++) {
		struct h2_follower *h = followed(">P >S");
		uint8_t got[4 * H2_SCRIPT_FRAME_MAX], frame[H2_SCRIPT_FRAME_MAX];
		size_t len = to_client(h, "<S7 <Sa <D1", step, got);
		ck_assert_uint_eq(len, 9 + 12 + 6 + 9 + 16);
		ck_assert_mem_eq(got + 36, frame, h2_script_word("D1", frame));
		ck_assert_uint_eq(h2_hold(h, frame, 3), 3);
		ck_assert(h2_is_amid_answer(h));
		h2_follower_destroy(&blocks, h);
	}
}
END_TEST

START_TEST(the_backend_gets_no_acknowledgement_of_the_agents_ping)
{
	for (size_t step = 1; step < 24; step++) {
		struct h2_follower *h = followed(BEGUN ">H7e <p"), *moves;
		uint8_t got[2 * H2_SCRIPT_FRAME_MAX], state[H2_STATE_MAX], frame[H2_SCRIPT_FRAME_MAX];
		h2_wind_down(h);
		must_say(h, "p G2147483647/0 ");
		follow(h, "<p");
		ck_assert_uint_eq(h2_follower_save(h, state), 0);
		ck_assert_uint_eq(to_backend(h, ">pa", step, got), 17); /* the backend's first */
		ck_assert_uint_eq(to_backend(h, ">pa", step, got), 0);
		ck_assert(!h2_is_idle(h));
		ck_assert_uint_eq(to_backend(h, ">pa >H9e", step, got), 17 + 16);
		ck_assert_mem_eq(got + 17, frame, h2_script_word("H9e", frame));
		moves = moved(h);
		h2_follower_destroy(&blocks, moves);
	}
}
END_TEST

START_TEST(a_goaway_with_an_error_ends_all_streams)
{
	struct h2_follower *h = followed(BEGUN ">H1e >H3e <G1");

	ck_assert(!h2_failed(h));
	follow(h, "<G1x");
	ck_assert(h2_failed(h));
	follow(h, "<H1ec");
	ck_assert(!h2_failed(h)); /* it goes on */
	h2_follower_destroy(&blocks, h);
}
END_TEST

static void must_answer(struct h2_follower *h, const char *expected)
{
	char said[64] = "";
	size_t len;
	const uint8_t *words = h2_bad_gateway(h, &len);

	if (words)
		read_frames(words, len, said);
	ck_assert_str_eq(said, expected);
}

START_TEST(where_no_backend_said_anything_requests_get_502)
{
	static const char *const scripts[][2] = {
		{ ">P >S >H1e", "S H1/502 G1/0 " },
		{ ">P >S >H1 >D1 >H3e >H5ec", "S H1/502 H3/502 G3/0 " },
		{ ">P >S >H1e >H3e >H5e", "S H1/502 H3/502 H5/502 G5/0 " },
		{ ">P >S >H1e >R1 >H3e", "S H3/502 G3/0 " },
		/* the backend may have read all of them, so no GOAWAY excludes one: an alert */
		{ ">P >S >H1e >H3e >H5e >H7e", "" },
		{ ">P >S >H1e >R1", "" },
		{ BEGUN ">H1e", "" }, /* the client's alert: headers of the backend may be under way */
		{ "=>H3e", "" },
	};
	struct h2_follower *h = followed(scripts[_i][0]);

	must_answer(h, scripts[_i][1]);
	h2_follower_destroy(&blocks, h);
}
END_TEST

static void add(TCase *t)
{
	slabs_init(&blocks, sizeof(struct h2_follower));
	tcase_add_test(t, who_winds_down_asks_for_no_more_streams_once);
	tcase_add_test(t, a_backend_that_said_goaway_needs_no_other);
	tcase_add_loop_test(t, words_are_said_between_two_frames_only, 0, 47);
	tcase_add_test(t, a_stranded_client_is_refused_whatever_it_asks);
	tcase_add_test(t, an_idle_client_is_asked_to_go_when_it_answers_a_ping);
	tcase_add_loop_test(t, the_stream_above_the_limit_is_refused_and_no_other, 1, 24);
	tcase_add_test(t, a_thousand_streams_at_once_are_refused_one_by_one);
	tcase_add_loop_test(t, settings_end_with_the_limit_of_streams, 0, (int)(sizeof limits / sizeof limits[0]));
	tcase_add_test(t, an_acknowledgement_changes_nothing_and_a_piece_of_a_header_is_held);
	tcase_add_test(t, the_backend_gets_no_acknowledgement_of_the_agents_ping);
	tcase_add_test(t, a_goaway_with_an_error_ends_all_streams);
	tcase_add_loop_test(t, where_no_backend_said_anything_requests_get_502, 0, 8);
}

UNIT(h2_words)
{
	return run_suite("h2_words", add);
}
