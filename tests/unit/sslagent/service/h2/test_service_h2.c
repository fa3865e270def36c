/* test_service_h2.c: facts of h2 behind the interface of all services. */
#include <stdlib.h>

#include "tests/unit/sslagent/service/h2/h2_script.h"
#include "tests/unit/sslagent/service/service_talk.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

static void converse_h2(struct service *s, const char *script)
{
	uint8_t frame[H2_SCRIPT_FRAME_MAX];
	char direction;

	*s = started(CONF_H2);
	if (*script == '=')
		service_strand(s);
	script += *script == '=';
	for (size_t len; (len = h2_script_next(&script, &direction, frame)) > 0;) {
		if (direction == '>')
			service_from_client(s, frame, len);
		else
			service_from_backend(s, frame, len);
	}
}

#define BEGUN ">P >S <S >Sa <Sa "
#define ALERT 'a' /* no words */
#define PLAIN 'p' /* none are needed */
#define WORDS 'w'

static const struct {
	const char *script;
	enum service_place place;
	enum service_reuse reuse;
	enum service_end end;
	enum service_repeat repeat;
	enum service_parting parting;
	unsigned outstanding;
	char leaves, backend_lost, head_late, track_lost; /* the words for each */
} h2_conversations[] = {
	{ "", SERVICE_CHECKPOINT, SERVICE_BACKEND_TIED, SERVICE_END_WHOLE, SERVICE_REPEAT_ANY_TIME, SERVICE_STAYS, 0,
		PLAIN, ALERT, ALERT, ALERT },
	{ ">P >S", SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_WHOLE, SERVICE_REPEAT_ANY_TIME, SERVICE_STAYS,
		0, WORDS, WORDS, WORDS, WORDS },
	/* no backend has said anything: 502 */
	{ ">P >S >H1e", SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_CUT, SERVICE_REPEAT_CUTS, SERVICE_STAYS, 1,
		ALERT, WORDS, ALERT, WORDS },
	{ ">P >S >H1ec", SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_CUT, SERVICE_REPEAT_CUTS, SERVICE_STAYS,
		1, ALERT, ALERT, WORDS, WORDS },
	{ BEGUN, SERVICE_CHECKPOINT, SERVICE_BACKEND_TIED, SERVICE_END_WHOLE, SERVICE_REPEAT_ANY_TIME, SERVICE_STAYS, 0,
		WORDS, WORDS, WORDS, WORDS },
	{ BEGUN ">H1e", SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_CUT, SERVICE_REPEAT_CUTS, SERVICE_STAYS, 1,
		ALERT, ALERT, ALERT, WORDS },
	{ BEGUN ">H1ec", SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_CUT, SERVICE_REPEAT_CUTS, SERVICE_STAYS,
		1, ALERT, ALERT, WORDS, WORDS },
	{ BEGUN ">H1e >H3ec", SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_CUT, SERVICE_REPEAT_CUTS,
		SERVICE_STAYS, 2, ALERT, ALERT, ALERT, WORDS },
	{ BEGUN ">H1e <H1ec", SERVICE_ANSWERING, SERVICE_BACKEND_USED_UP, SERVICE_END_CUT, SERVICE_REPEAT_CUTS,
		SERVICE_STAYS, 0, ALERT, ALERT, ALERT, ALERT },
	{ BEGUN ">H1e <H1e", SERVICE_CHECKPOINT, SERVICE_BACKEND_TIED, SERVICE_END_WHOLE, SERVICE_REPEAT_CUTS,
		SERVICE_STAYS, 0, WORDS, WORDS, WORDS, WORDS },
	{ BEGUN ">H1e <H1e <G1", SERVICE_CHECKPOINT, SERVICE_BACKEND_TIED, SERVICE_END_WHOLE, SERVICE_REPEAT_CUTS,
		SERVICE_STAYS, 0, PLAIN, PLAIN, PLAIN, WORDS },
	/* the GOAWAY excludes stream 3, so it is not open: the one that is, or none, counts */
	{ BEGUN ">H1e <G1 >H3ec", SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_CUT, SERVICE_REPEAT_CUTS,
		SERVICE_STAYS, 2, ALERT, ALERT, ALERT, WORDS },
	{ BEGUN ">H1e <H1e <G1 >H3ec", SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_WHOLE, SERVICE_REPEAT_CUTS,
		SERVICE_STAYS, 1, PLAIN, PLAIN, PLAIN, WORDS },
	/* the backend breaks the protocol, and a stream of the client is cut off */
	{ BEGUN ">H1e <U1:3", SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_CUT, SERVICE_REPEAT_CUTS,
		SERVICE_TRACK_LOST, 1, ALERT, ALERT, ALERT, ALERT },
	/* a GOAWAY that tells an error ends all streams, and the backend may end here */
	{ BEGUN ">H1e <G0x", SERVICE_CHECKPOINT, SERVICE_BACKEND_TIED, SERVICE_END_WHOLE, SERVICE_REPEAT_CUTS,
		SERVICE_STAYS, 0, PLAIN, PLAIN, PLAIN, PLAIN },
	{ BEGUN ">H1e <G1x", SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_WHOLE, SERVICE_REPEAT_CUTS,
		SERVICE_STAYS, 1, PLAIN, PLAIN, PLAIN, PLAIN },
	{ BEGUN ">H1e <G1x <H1ec", SERVICE_ANSWERING, SERVICE_BACKEND_USED_UP, SERVICE_END_CUT, SERVICE_REPEAT_CUTS,
		SERVICE_STAYS, 0, ALERT, ALERT, ALERT, ALERT },
	{ "=>W", SERVICE_CHECKPOINT, SERVICE_BACKEND_TIED, SERVICE_END_WHOLE, SERVICE_REPEAT_ANY_TIME, SERVICE_STAYS, 0,
		WORDS, ALERT, WORDS, WORDS },
	{ "=>H3e", SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_WHOLE, SERVICE_REPEAT_CUTS, SERVICE_LEAVES, 0,
		WORDS, ALERT, WORDS, WORDS },
	{ "=>H2e", SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_WHOLE, SERVICE_REPEAT_CUTS, SERVICE_TRACK_LOST,
		1, WORDS, WORDS, WORDS, WORDS },
};
#define H2_CONVERSATIONS ((int)(sizeof h2_conversations / sizeof h2_conversations[0]))

static char words_for(const struct service *s, enum service_parting why)
{
	size_t len;
	const char *words = service_last_words(s, why, &len);

	return !words ? ALERT : len ? WORDS : PLAIN;
}

START_TEST(h2_stands_where_its_streams_end)
{
	struct service s;

	converse_h2(&s, h2_conversations[_i].script);
	ck_assert_int_eq(service_place(&s), h2_conversations[_i].place);
	ck_assert_int_eq(service_backend_reuse(&s), h2_conversations[_i].reuse);
	ck_assert_int_eq(service_backend_ended(&s), h2_conversations[_i].end);
	ck_assert_int_eq(service_repeat(&s), h2_conversations[_i].repeat);
	ck_assert_int_eq(service_parting(&s), h2_conversations[_i].parting);
	ck_assert_uint_eq(service_outstanding(&s), h2_conversations[_i].outstanding);
	service_destroy(&s);
}
END_TEST

START_TEST(h2_says_goaway_where_no_open_stream_is_cut)
{
	struct service s;

	converse_h2(&s, h2_conversations[_i].script);
	ck_assert_int_eq(words_for(&s, SERVICE_LEAVES), h2_conversations[_i].leaves);
	ck_assert_int_eq(words_for(&s, SERVICE_BACKEND_LOST), h2_conversations[_i].backend_lost);
	ck_assert_int_eq(words_for(&s, SERVICE_HEAD_LATE), h2_conversations[_i].head_late);
	ck_assert_int_eq(words_for(&s, SERVICE_TRACK_LOST), h2_conversations[_i].track_lost);
	service_destroy(&s);
}
END_TEST

START_TEST(only_h2_has_words_of_its_own)
{
	static const uint8_t frame[1000] = { 0, 3, 223 }; /* DATA */
	struct service h2, http = started(CONF_HTTP), tcp = started(CONF_TCP);
	size_t len;

	converse_h2(&h2, BEGUN ">H1e");
	ask(&http, GET);
	ask(&tcp, "x");
	struct service *all[] = { &h2, &http, &tcp };
	for (int i = 0; i < 3; i++) {
		service_wind_down(all[i]);
		ck_assert_int_eq(service_words(all[i], &len) != NULL, i == 0);
		ck_assert_uint_eq(service_until_words(all[i], frame, sizeof frame), i == 0 ? 0 : sizeof frame);
		ck_assert_int_eq(service_parting(all[i]), SERVICE_STAYS);
		ck_assert(!service_is_stranded(all[i]));
		service_destroy(all[i]);
	}
}
END_TEST

START_TEST(an_h2_state_that_cannot_be_restored_is_followed_no_more)
{
	struct service s, moved = { 0 };
	uint8_t *state;
	size_t len;

	converse_h2(&s, BEGUN ">H1e <H1");
	ck_assert_int_eq(service_save(&s, &state, &len), 0);
	service_restore(&moved, CONF_H2, &blocks, state, len);
	ck_assert_int_eq(service_place(&moved), SERVICE_ASKING);
	service_destroy(&moved);
	service_restore(&moved, CONF_H2, &blocks, state, len - 1);
	ck_assert_int_eq(service_place(&moved), SERVICE_OPAQUE);
	ck_assert_int_eq(service_backend_ended(&moved), SERVICE_END_CUT);
	free(state);
	service_destroy(&s);
}
END_TEST

static void add(TCase *t)
{
	service_blocks_init(&blocks);
	tcase_add_loop_test(t, h2_stands_where_its_streams_end, 0, H2_CONVERSATIONS);
	tcase_add_loop_test(t, h2_says_goaway_where_no_open_stream_is_cut, 0, H2_CONVERSATIONS);
	tcase_add_test(t, only_h2_has_words_of_its_own);
	tcase_add_test(t, an_h2_state_that_cannot_be_restored_is_followed_no_more);
}

UNIT(service_h2)
{
	return run_suite("service_h2", add);
}
