/* test_h2_follower.c: facts of the frames of HTTP/2: when a conversation is idle, what is open, what the agent says
 * itself, and that nothing of it depends on how bytes are cut, or on a move between two of them. */
#include <stdio.h>

#include "sslagent/service/h2/h2_follower.h"
#include "tests/unit/sslagent/service/h2/h2_follow.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

static const struct {
	const char *script;
	enum h2_phase phase;
	unsigned open;
	int is_idle;
} standings[] = {
	{ "", H2_BEGINS, 0, 0 }, { ">P", H2_FOLLOWS, 0, 0 }, { ">P >S", H2_FOLLOWS, 0, 0 },
	{ ">P >S <S", H2_FOLLOWS, 0, 0 }, { ">P >S <S >Sa", H2_FOLLOWS, 0, 0 }, /* the backend has not acknowledged */
	{ ">P >S <S <Sa", H2_FOLLOWS, 0, 0 },                                   /* nor the client */
	{ BEGUN, H2_FOLLOWS, 0, 1 }, { BEGUN ">W <W >T >X <X", H2_FOLLOWS, 0, 1 }, { BEGUN ">H1e", H2_FOLLOWS, 1, 0 },
	{ BEGUN ">H1e <H1", H2_FOLLOWS, 1, 0 }, { BEGUN ">H1e <H1 <D1", H2_FOLLOWS, 1, 0 },
	{ BEGUN ">H1e <H1 <D1e", H2_FOLLOWS, 0, 1 }, { BEGUN ">H1e <H1e", H2_FOLLOWS, 0, 1 },
	{ BEGUN ">H1 <H1e", H2_FOLLOWS, 1, 0 }, /* an early answer */
	{ BEGUN ">H1 <H1e >D1 >D1e", H2_FOLLOWS, 0, 1 },
	{ BEGUN ">H1 >D1 >H1e <H1 <D1 <H1e", H2_FOLLOWS, 0, 1 }, /* trailers both ways */
	{ BEGUN ">H1e >H3e >H5e <H3 <D3e", H2_FOLLOWS, 2, 0 },
	{ BEGUN ">H1e >H3e >H5e <H3e <H1e <H5e", H2_FOLLOWS, 0, 1 }, { BEGUN ">H1 >R1", H2_FOLLOWS, 0, 1 },
	{ BEGUN ">H1 >R1 <D1 <R1", H2_FOLLOWS, 0, 1 }, { BEGUN ">H1e <R1", H2_FOLLOWS, 0, 1 },
	{ BEGUN ">H1ec", H2_FOLLOWS, 1, 0 }, { BEGUN ">H1ec >C1c >C1 <H1e", H2_FOLLOWS, 0, 1 },
	{ BEGUN ">H1e <H1ec", H2_FOLLOWS, 0, 0 }, /* its end came, but not its head's */
	{ BEGUN ">H1e <H1ec <C1", H2_FOLLOWS, 0, 1 }, { BEGUN ">H1e <H1ec <C1c >p", H2_FOLLOWS, 0, 0 },
	{ BEGUN ">p", H2_FOLLOWS, 0, 0 }, { BEGUN ">p <pa", H2_FOLLOWS, 0, 1 }, { BEGUN "<p", H2_FOLLOWS, 0, 0 },
	{ BEGUN "<p >pa", H2_FOLLOWS, 0, 1 }, { BEGUN "<p <p >pa", H2_FOLLOWS, 0, 0 },
	{ BEGUN "<pa >pa >Sa <Sa", H2_FOLLOWS, 0, 1 }, /* of nothing */
	{ BEGUN ">H1e <U1:2 <H1e", H2_FOLLOWS, 1, 0 }, { BEGUN ">H1e <u1:2 <H1e <H2 <D2e", H2_FOLLOWS, 0, 1 },
	{ BEGUN ">H1e <U1:2 <H1e >R2", H2_FOLLOWS, 0, 1 },
	{ BEGUN ">H1e >H3e <G1", H2_FOLLOWS, 1, 0 }, /* nobody answers stream 3 */
	{ BEGUN ">H1e <G1 >H3e <H1e", H2_FOLLOWS, 0, 1 }, { BEGUN ">H1e <U1:2 <G1", H2_FOLLOWS, 2, 0 },
	{ BEGUN ">H1e >H3e <G2147483647", H2_FOLLOWS, 2, 0 },
	{ BEGUN ">H3e <H3e >H1e", H2_FOLLOWS, 0, 1 }, /* not open, and not to be opened */
	{ BEGUN ">H2e", H2_FOLLOWS, 0, 1 }, { BEGUN ">S >H1e <Sa <H1e", H2_FOLLOWS, 0, 1 },
	{ "=>W", H2_STRANDED, 0, 1 }, { "=>W >X >T >R7 >pa >Sa >G0", H2_STRANDED, 0, 1 }, { "=>D7", H2_STRANDED, 0, 1 },
	{ "=>p", H2_STRANDED, 0, 1 }, { "=>S", H2_STRANDED, 0, 1 }, { "=", H2_STRANDED, 0, 1 },
	{ "=>H9e", H2_STRANDED, 0, 0 }, { "=>H8e", H2_LOST, 0, 0 },
	{ ">P >S <Sa", H2_LOST, 0, 0 }, /* a backend begins with SETTINGS */
	{ ">P >S <H1", H2_LOST, 0, 0 }, { BEGUN "<U1:3", H2_LOST, 0, 0 },
	{ ">P >S <S2 >Sa >H1e >H3e >H5e", H2_FOLLOWS, 3, 0 }, /* the backend judges that */
};
#define STANDINGS ((int)(sizeof standings / sizeof standings[0]))

static void stands(const struct h2_follower *h, int i)
{
	ck_assert_int_eq(h->phase, standings[i].phase);
	ck_assert_uint_eq(h->streams.count, standings[i].open);
	ck_assert_int_eq(h2_is_idle(h), standings[i].is_idle);
}

START_TEST(frames_tell_what_is_open)
{
	struct h2_follower *h = followed(standings[_i].script);

	stands(h, _i);
	h2_follower_destroy(&blocks, h);
}
END_TEST

START_TEST(bytes_may_come_one_by_one)
{
	struct h2_follower *h = h2_follower_create(&blocks);
	const char *script = begin(h, standings[_i].script);
	uint8_t frame[H2_SCRIPT_FRAME_MAX];
	char direction;

	for (size_t len; (len = h2_script_next(&script, &direction, frame)) > 0;) {
		for (size_t i = 0; i < len; i++)
			say(h, direction, frame + i, 1);
	}
	stands(h, _i);
	h2_follower_destroy(&blocks, h);
}
END_TEST

START_TEST(a_move_behind_any_byte_changes_nothing)
{
	struct h2_follower *h = h2_follower_create(&blocks);
	const char *script = begin(h, standings[_i].script);
	uint8_t frame[H2_SCRIPT_FRAME_MAX];
	char direction;

	for (size_t len; (len = h2_script_next(&script, &direction, frame)) > 0;) {
		for (size_t i = 0; i < len; i++) {
			say(h, direction, frame + i, 1);
			if (h->phase <= H2_FOLLOWS)
				h = moved(h);
		}
	}
	stands(h, _i);
	h2_follower_destroy(&blocks, h);
}
END_TEST

START_TEST(a_state_that_was_changed_is_refused_or_at_least_sane)
{
	struct h2_follower *h = followed(BEGUN ">H1e >H3e <H1");
	uint8_t state[H2_STATE_MAX];
	size_t len = h2_follower_save(h, state);

	h2_follower_destroy(&blocks, h);
	ck_assert_ptr_null(h2_follower_restore(&blocks, state, len - 1));
	for (size_t i = 0; i < len; i++) {
		state[i] ^= 0xff;
		h = h2_follower_restore(&blocks, state, len);
		if (h)
			follow(h, ">D1e <H3e <p >pa >H5e");
		ck_assert(i > 0 || !h); /* another version */
		h2_follower_destroy(&blocks, h);
		state[i] ^= 0xff;
	}
}
END_TEST

/* --- what is no HTTP/2 --- */

static const char *const strangers[] = { "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PRI * HTTP/1.1\r\n\r\n",
	"POST / HTTP/1.1\r\n", "EHLO client.example\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x01\x02\x03" };

START_TEST(a_client_of_another_protocol_is_noticed_at_its_first_frame)
{
	struct h2_follower *h = h2_follower_create(&blocks);

	say(h, '>', (const uint8_t *)strangers[_i], 14);
	ck_assert_int_eq(h->phase, H2_LOST);
	h2_follower_destroy(&blocks, h);
}
END_TEST

START_TEST(streams_end_in_any_order)
{
	struct h2_follower *h = followed(BEGUN);
	char word[16];

	for (unsigned i = 0; i < 60; i++) {
		snprintf(word, sizeof word, ">H%ue", 2 * i + 1);
		follow(h, word);
	}
	for (unsigned i = 0; i < 60; i++) {
		snprintf(word, sizeof word, "<D%ue", 2 * (i * 7 % 60) + 1);
		follow(h, word);
		ck_assert_uint_eq(h->streams.count, 59 - i);
	}
	ck_assert(h2_is_idle(h));
	h2_follower_destroy(&blocks, h);
}
END_TEST

START_TEST(rapid_resets_and_endless_continuations_leave_nothing_behind)
{
	struct h2_follower *h = followed(BEGUN);
	char words[64];

	for (unsigned i = 0; i < 20000; i++) {
		snprintf(words, sizeof words, ">H%u >R%u", 2 * i + 1, 2 * i + 1);
		follow(h, words);
		ck_assert_uint_eq(h->streams.count, 0);
	}
	follow(h, ">H49999c");
	for (unsigned i = 0; i < 20000; i++)
		follow(h, ">C49999c");
	ck_assert_uint_eq(h->streams.count, 1);
	ck_assert_int_eq(h->phase, H2_FOLLOWS);
	h2_follower_destroy(&blocks, h);
}
END_TEST

/* --- heads --- */

static const struct {
	const char *script;
	size_t more; /* bytes of the next word */
	const char *word;
	int is_under_way;
} heads[] = {
	{ "", 1, ">P", 1 },
	{ "", 23, ">P", 1 },
	{ "", 24, ">P", 0 },
	{ BEGUN, 1, ">H1", 1 },
	{ BEGUN, 9, ">H1", 1 },
	{ BEGUN, 15, ">H1", 1 },
	{ BEGUN, 16, ">H1", 0 },
	{ BEGUN ">H1c", 0, NULL, 1 },
	{ BEGUN ">H1c", 12, ">C1", 1 },
	{ BEGUN ">H1c >C1", 0, NULL, 0 },
	{ BEGUN ">H1", 12, ">D1", 0 }, /* a body takes its time */
	{ BEGUN ">H1", 12, ">p", 1 },
};

START_TEST(a_head_is_under_way_until_its_block_is_whole)
{
	struct h2_follower *h = followed(heads[_i].script);
	uint8_t frame[H2_SCRIPT_FRAME_MAX];
	char direction;
	const char *word = heads[_i].word;

	if (word && h2_script_next(&word, &direction, frame) > 0)
		say(h, direction, frame, heads[_i].more);
	ck_assert_int_eq(h2_head_under_way(h) != 0, heads[_i].is_under_way);
	h2_follower_destroy(&blocks, h);
}
END_TEST

START_TEST(a_block_keeps_its_number_and_the_next_has_another)
{
	struct h2_follower *h = followed(BEGUN ">H1c");
	uint32_t first = h2_head_under_way(h);

	follow(h, ">C1c >C1c");
	ck_assert_uint_eq(h2_head_under_way(h), first);
	ck_assert(h2_begins_stream(h));
	follow(h, ">C1 >H3c");
	ck_assert_uint_ne(h2_head_under_way(h), first);
	follow(h, ">C3 >H1c");
	ck_assert(!h2_begins_stream(h)); /* trailers */
	h2_follower_destroy(&blocks, h);
}
END_TEST

/* --- the last words --- */

static const struct {
	const char *script;
	const char *error_free, *error; /* NULL: not here; "": none is needed */
} farewells[] = {
	{ BEGUN, "G0/0 ", "G0/1 " }, { BEGUN ">H1e <H1e", "G1/0 ", "G1/1 " },
	{ BEGUN ">H1e <H1e >H7e <H7e", "G7/0 ", "G7/1 " },
	{ BEGUN ">H1e <H1e >H3c", "G1/0 ", "G1/1 " }, /* no backend can have begun with it */
	{ BEGUN ">H1e <H1e >H3c >C3", "G3/0 ", "G3/1 " }, { BEGUN ">H1e <H1e <G1", "", "G1/1 " },
	{ BEGUN ">H1e <H1e <G2147483647", "G1/0 ", "G1/1 " }, { BEGUN ">H1e >H3e <G1 <H1e", "", "G1/1 " },
	{ BEGUN ">H1e <H1ec", NULL, NULL }, { ">P >S", "S G0/0 ", "S G0/1 " }, /* a server begins with SETTINGS */
	{ "", "S G0/0 ", "S G0/1 " }, { "=>W >H9e", "G7/0 ", "G7/1 " }, { "=>H1e", "G0/0 ", "G0/1 " },
	{ "=>W", "G1/0 ", "G1/1 " }, { "=>H11e >H13e", "G9/0 ", "G9/1 " }, /* neither was worked on */
	{ BEGUN ">H1e <G0x", "", "" }, /* a backend told an error; stream 1 is over */
};

START_TEST(a_farewell_names_the_last_stream_that_was_worked_on)
{
	for (int error = H2_NO_ERROR; error <= H2_PROTOCOL_ERROR; error++) {
		struct h2_follower *h = followed(farewells[_i].script);
		const char *expected = error ? farewells[_i].error : farewells[_i].error_free;
		char said[64];
		size_t len;
		const uint8_t *words = h2_farewell(h, (enum h2_error)error, &len);
		ck_assert_int_eq(words != NULL, expected != NULL);
		if (words) {
			read_frames(words, len, said);
			ck_assert_str_eq(said, expected);
		}
		h2_follower_destroy(&blocks, h);
	}
}
END_TEST

static void add(TCase *t)
{
	slabs_init(&blocks, sizeof(struct h2_follower));
	tcase_add_loop_test(t, frames_tell_what_is_open, 0, STANDINGS);
	tcase_add_loop_test(t, bytes_may_come_one_by_one, 0, STANDINGS);
	tcase_add_loop_test(t, a_move_behind_any_byte_changes_nothing, 0, STANDINGS);
	tcase_add_test(t, a_state_that_was_changed_is_refused_or_at_least_sane);
	tcase_add_loop_test(t, a_client_of_another_protocol_is_noticed_at_its_first_frame, 0,
		(int)(sizeof strangers / sizeof strangers[0]));
	tcase_add_test(t, streams_end_in_any_order);
	tcase_add_test(t, rapid_resets_and_endless_continuations_leave_nothing_behind);
	tcase_add_loop_test(t, a_head_is_under_way_until_its_block_is_whole, 0, (int)(sizeof heads / sizeof heads[0]));
	tcase_add_test(t, a_block_keeps_its_number_and_the_next_has_another);
	tcase_add_loop_test(t, a_farewell_names_the_last_stream_that_was_worked_on, 0,
		(int)(sizeof farewells / sizeof farewells[0]));
}

UNIT(h2_follower)
{
	return run_suite("h2_follower", add);
}
