/* test_service.c: facts of tcp and http behind one interface: where a checkpoint is, when a backend connection may be
 * used again, which ends are whole, and what moves. */
#include <stdlib.h>

#include "tests/unit/sslagent/service/service_talk.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define CLOSES "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
#define TO_END "HTTP/1.1 200 OK\r\n\r\nuntil the end"
#define HINTS  "HTTP/1.1 103 Early Hints\r\n\r\n"

START_TEST(tcp_is_at_a_checkpoint_before_its_first_byte_only)
{
	struct service s = started(CONF_TCP);

	ck_assert_int_eq(service_place(&s), SERVICE_CHECKPOINT);
	if (_i)
		ask(&s, "x");
	else
		answer(&s, "x");
	ck_assert_int_eq(service_place(&s), SERVICE_OPAQUE);
	service_destroy(&s);
}
END_TEST

START_TEST(a_tcp_backend_is_never_used_again_and_its_end_is_whole)
{
	struct service s = started(CONF_TCP);

	ck_assert_int_eq(service_backend_reuse(&s), SERVICE_BACKEND_USED_UP);
	ck_assert_int_eq(service_backend_ended(&s), SERVICE_END_WHOLE);
	ask(&s, "x");
	ck_assert_int_eq(service_backend_reuse(&s), SERVICE_BACKEND_USED_UP);
	ck_assert_int_eq(service_backend_ended(&s), SERVICE_END_WHOLE);
	service_destroy(&s);
}
END_TEST

START_TEST(tcp_has_no_words_for_a_backend_out_of_reach)
{
	struct service s = started(CONF_TCP);
	size_t len;

	ck_assert_ptr_null(service_last_words(&s, SERVICE_BACKEND_LOST, &len));
	service_destroy(&s);
}
END_TEST

/* Where http stands behind what was asked and answered. */
static const struct {
	const char *asked, *answered;
	enum service_place place;
	enum service_reuse reuse;
	enum service_end end;
	int words; /* for a backend out of reach */
} conversations[] = {
	{ "", "", SERVICE_CHECKPOINT, SERVICE_BACKEND_FOR_ALL, SERVICE_END_WHOLE, 1 },
	{ "GE", "", SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_CUT, 1 },
	{ GET, "", SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_CUT, 1 },
	{ GET, HINTS, SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_CUT, 1 },
	{ GET, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", SERVICE_ANSWERING, SERVICE_BACKEND_USED_UP,
		SERVICE_END_CUT, 0 },
	{ GET, OK5, SERVICE_CHECKPOINT, SERVICE_BACKEND_FOR_ALL, SERVICE_END_WHOLE, 1 },
	{ GET, CLOSES, SERVICE_CHECKPOINT, SERVICE_BACKEND_USED_UP, SERVICE_END_WHOLE, 1 },
	{ GET, TO_END, SERVICE_ANSWERING, SERVICE_BACKEND_USED_UP, SERVICE_END_WHOLE, 0 },
	{ GET GET, OK5, SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_CUT, 1 },
	{ GET GET, "", SERVICE_ASKING, SERVICE_BACKEND_USED_UP, SERVICE_END_CUT, 0 },
	{ GET GET, OK5 OK5, SERVICE_CHECKPOINT, SERVICE_BACKEND_FOR_CLIENT, SERVICE_END_WHOLE, 1 },
	{ "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc", OK5, SERVICE_ANSWERING, SERVICE_BACKEND_USED_UP,
		SERVICE_END_WHOLE, 0 },
};
#define CONVERSATIONS ((int)(sizeof conversations / sizeof conversations[0]))

static void converse(struct service *s, int i)
{
	*s = started(CONF_HTTP);
	if (conversations[i].asked[0])
		ask(s, conversations[i].asked);
	if (conversations[i].answered[0])
		answer(s, conversations[i].answered);
}

START_TEST(http_stands_where_its_messages_end)
{
	struct service s;

	converse(&s, _i);
	ck_assert_int_eq(service_place(&s), conversations[_i].place);
	service_destroy(&s);
}
END_TEST

START_TEST(an_http_backend_is_used_again_between_answers_that_let_it)
{
	struct service s;

	converse(&s, _i);
	ck_assert_int_eq(service_backend_reuse(&s), conversations[_i].reuse);
	service_destroy(&s);
}
END_TEST

START_TEST(an_end_is_whole_where_http_shows_it)
{
	struct service s;

	converse(&s, _i);
	ck_assert_int_eq(service_backend_ended(&s), conversations[_i].end);
	service_destroy(&s);
}
END_TEST

START_TEST(bad_gateway_is_said_to_one_request_without_an_answer)
{
	struct service s;
	size_t len = 0;

	converse(&s, _i);
	const char *words = service_last_words(&s, SERVICE_BACKEND_LOST, &len);
	ck_assert_int_eq(words != NULL, conversations[_i].words);
	if (words) {
		ck_assert_int_eq(strncmp(words, "HTTP/1.1 502 ", 13), 0);
		ck_assert_uint_eq(len, strlen(words));
	}
	service_destroy(&s);
}
END_TEST

/* What the last piece of an answer was, behind what went before it. */
static const struct {
	const char *asked, *before, *piece;
	enum service_piece is;
} pieces[] = {
	{ GET, "", HINTS, SERVICE_INTERIM },
	{ GET, HINTS, HINTS, SERVICE_INTERIM },
	{ GET, "", HINTS HINTS, SERVICE_INTERIM },
	{ GET, "", "HTTP/1.1 103 Early", SERVICE_RESPONSE },
	{ GET, "HTTP/1.1 103 Early", " Hints\r\n\r\n", SERVICE_RESPONSE },
	{ GET, "", HINTS "HTTP/1.1 2", SERVICE_RESPONSE },
	{ GET, "", HINTS OK5, SERVICE_RESPONSE },
	{ GET, HINTS, OK5, SERVICE_RESPONSE },
	{ GET GET, "", OK5, SERVICE_RESPONSE },
	{ GET GET, OK5, HINTS, SERVICE_INTERIM },
	{ GET, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hell", SERVICE_RESPONSE },
	{ GET, "", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", SERVICE_RESPONSE },
	{ "SSH-2.0-x\r\n", "", "SSH-2.0-y\r\n", SERVICE_RESPONSE },
};

START_TEST(only_whole_interim_answers_are_no_part_of_an_answer)
{
	struct service s = started(CONF_HTTP);

	ask(&s, pieces[_i].asked);
	answer(&s, pieces[_i].before);
	ck_assert_int_eq(
		service_from_backend(&s, (const uint8_t *)pieces[_i].piece, strlen(pieces[_i].piece)), pieces[_i].is);
	service_destroy(&s);
}
END_TEST

static const struct {
	const char *asked;
	enum service_repeat repeat;
	unsigned outstanding;
} repeats[] = {
	{ "", SERVICE_REPEAT_ANY_TIME, 0 },
	{ GET, SERVICE_REPEAT_ANY_TIME, 1 },
	{ "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" GET, SERVICE_REPEAT_ANY_TIME, 2 },
	{ "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf", SERVICE_REPEAT_IF_ALONE, 1 },
	{ "DELETE / HTTP/1.1\r\nHost: a\r\n\r\n" GET, SERVICE_REPEAT_IF_ALONE, 2 },
	{ "PATCH / HTTP/1.1\r\nHost: a\r\n\r\n", SERVICE_REPEAT_NEVER, 1 },
	{ "POST / HTTP/1.1\r\nHost: a\r\n\r\n"
	  "PUT / HTTP/1.1\r\nHost: a\r\n\r\n",
		SERVICE_REPEAT_NEVER, 2 },
	{ "POST / HTTP/1.1\r\nHost: a\r\n", SERVICE_REPEAT_ANY_TIME, 1 }, /* no whole head: nothing was done */
	{ GET "POST / HTTP/1.1\r\nHost: a\r\n", SERVICE_REPEAT_ANY_TIME, 2 },
	{ "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", SERVICE_REPEAT_NEVER, 0 },
};

START_TEST(open_requests_are_repeated_as_the_strictest_of_them_allows)
{
	struct service s = started(CONF_HTTP);

	if (repeats[_i].asked[0])
		ask(&s, repeats[_i].asked);
	ck_assert_int_eq(service_repeat(&s), repeats[_i].repeat);
	ck_assert_uint_eq(service_outstanding(&s), repeats[_i].outstanding);
	service_destroy(&s);
}
END_TEST

START_TEST(doubt_makes_tcp_of_http_for_good)
{
	static const char *const doubts[] = { "SSH-2.0-x\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n" };
	struct service s = started(CONF_HTTP);

	ask(&s, doubts[_i]);
	ck_assert_int_eq(s.following, SERVICE_NOT_FOLLOWED);
	ck_assert_int_eq(service_place(&s), SERVICE_OPAQUE);
	ask(&s, GET);
	answer(&s, OK5);
	ck_assert_int_eq(service_place(&s), SERVICE_OPAQUE);
	ck_assert_int_eq(service_backend_reuse(&s), SERVICE_BACKEND_USED_UP);
	service_destroy(&s);
}
END_TEST

START_TEST(a_conversation_that_moves_stands_where_it_stood)
{
	struct service s, moved = { 0 };
	uint8_t *state;
	size_t len;

	converse(&s, _i);
	ck_assert_int_eq(service_save(&s, &state, &len), 0);
	service_restore(&moved, CONF_HTTP, &blocks, state, len);
	free(state);
	if (conversations[_i].asked[0]) {
		ck_assert_int_eq(service_place(&moved), conversations[_i].place);
		ck_assert_int_eq(service_backend_reuse(&moved), conversations[_i].reuse);
	} else {
		ck_assert_int_eq(
			service_place(&moved), SERVICE_OPAQUE); /* a conversation is open, and no more is known */
	}
	service_destroy(&s);
	service_destroy(&moved);
}
END_TEST

START_TEST(tcp_moves_without_a_state)
{
	struct service s = started(CONF_TCP), moved = { 0 };
	uint8_t *state;
	size_t len;

	ask(&s, "x");
	ck_assert_int_eq(service_save(&s, &state, &len), 0);
	ck_assert_ptr_null(state);
	ck_assert_uint_eq(len, 0);
	service_restore(&moved, CONF_TCP, &blocks, NULL, 0);
	ck_assert_int_eq(service_place(&moved), SERVICE_OPAQUE);
	service_destroy(&moved);
}
END_TEST

START_TEST(a_state_that_cannot_be_restored_makes_tcp)
{
	struct service s, moved = { 0 };
	uint8_t *state;
	size_t len;

	converse(&s, 2);
	ck_assert_int_eq(service_save(&s, &state, &len), 0);
	state[0] ^= 0xff; /* of another make */
	service_restore(&moved, CONF_HTTP, &blocks, state, len);
	ck_assert_int_eq(moved.following, SERVICE_NOT_FOLLOWED);
	ck_assert_int_eq(service_place(&moved), SERVICE_OPAQUE);
	service_restore(&moved, CONF_HTTP, &blocks, state, len - 1);
	ck_assert_int_eq(moved.following, SERVICE_NOT_FOLLOWED);
	free(state);
	service_destroy(&s);
}
END_TEST

/* http that became tcp: what the client said, what the backend said before its FIN, and whether that was all. */
#define UPGRADE "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
#define CONNECT "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"
#define NTLM    "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: NTLM abc\r\n\r\n"
#define HALF    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"
#define SWITCH  "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
#define REFUSE  "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\n"

static const struct {
	const char *asked, *answered;
	enum service_end end;
} doubted_ends[] = {
	{ "SSH-2.0-x\r\n", "SSH-2.0-y\r\n", SERVICE_END_WHOLE }, /* never was HTTP */
	{ "SSH-2.0-x\r\n", "", SERVICE_END_WHOLE },
	{ GET "\1\2", HALF, SERVICE_END_CUT },
	{ GET "\1\2", OK5, SERVICE_END_WHOLE }, /* nobody knows whether something else was asked */
	{ UPGRADE, SWITCH, SERVICE_END_WHOLE },
	{ UPGRADE, SWITCH HALF, SERVICE_END_WHOLE }, /* of a tunnel */
	{ UPGRADE "\x81\1x", SWITCH "\x81\1y", SERVICE_END_WHOLE },
	{ UPGRADE, "", SERVICE_END_CUT },
	{ UPGRADE, REFUSE "no", SERVICE_END_WHOLE },
	{ UPGRADE, REFUSE "n", SERVICE_END_CUT },
	{ GET UPGRADE, HALF, SERVICE_END_CUT },
	{ GET UPGRADE, OK5, SERVICE_END_CUT },
	{ GET UPGRADE, OK5 SWITCH, SERVICE_END_WHOLE },
	{ CONNECT, "HTTP/1.1 200 OK\r\n\r\nwhatever", SERVICE_END_WHOLE },
	{ CONNECT, REFUSE "n", SERVICE_END_CUT },
	{ NTLM, OK5, SERVICE_END_WHOLE },
	{ NTLM, HALF, SERVICE_END_CUT },
	{ NTLM, TO_END, SERVICE_END_WHOLE },
	{ NTLM NTLM, OK5, SERVICE_END_CUT },
	{ NTLM "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", OK5 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
		SERVICE_END_WHOLE },
	{ GET, OK5 OK5, SERVICE_END_WHOLE },
	{ GET, OK5 HALF, SERVICE_END_CUT },
	{ GET, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", SERVICE_END_CUT },
};

/* Moved in its midst, or not. */
START_TEST(an_answer_cut_off_is_one_even_when_http_has_become_tcp)
{
	size_t row = (size_t)_i / 2;
	struct service s = started(CONF_HTTP);
	uint8_t *state;
	size_t len;

	ask(&s, doubted_ends[row].asked);
	if (_i % 2) {
		ck_assert_int_eq(service_save(&s, &state, &len), 0);
		service_destroy(&s);
		service_restore(&s, CONF_HTTP, &blocks, state, len);
		free(state);
	}
	answer(&s, doubted_ends[row].answered);
	ck_assert_int_eq(s.following, SERVICE_NOT_FOLLOWED);
	ck_assert_int_eq(service_backend_ended(&s), doubted_ends[row].end);
	service_destroy(&s);
}
END_TEST

START_TEST(between_exchanges_http_holds_no_follower_and_moves_all_the_same)
{
	struct service s = started(CONF_HTTP), moved = { 0 };
	uint8_t *state;
	size_t len;

	for (unsigned i = 0; i < 3; i++) {
		ask(&s, i == 1 ? "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n" : GET);
		ck_assert_ptr_nonnull(s.state);
		answer(&s, OK5);
		ck_assert_ptr_null(s.state);
		ck_assert_int_eq(service_place(&s), SERVICE_CHECKPOINT);
		ck_assert_int_eq(service_backend_reuse(&s), SERVICE_BACKEND_FOR_ALL);
	}
	ck_assert_int_eq(service_repeat(&s), SERVICE_REPEAT_IF_ALONE);
	ck_assert_int_eq(service_save(&s, &state, &len), 0);
	service_restore(&moved, CONF_HTTP, &blocks, state, len);
	free(state);
	ck_assert_int_eq(service_place(&moved), SERVICE_CHECKPOINT);
	ck_assert_int_eq(service_repeat(&moved), SERVICE_REPEAT_IF_ALONE);
	answer(&moved, OK5); /* nobody asked */
	ck_assert_int_eq(service_place(&moved), SERVICE_OPAQUE);
	service_destroy(&moved);
	service_destroy(&s);
}
END_TEST

/* Nobody asks a row for an operation before it is called. */
START_TEST(each_service_has_the_operations_that_its_traits_demand)
{
	const struct service_ops *o = service_rows[_i];
	int is_followed = service_traits[_i].following == SERVICE_FOLLOWED;

	ck_assert_ptr_nonnull(o);
	ck_assert(o->from_client && o->from_backend);
	ck_assert_int_eq(is_followed, o->state_len && o->drop_state && o->save && o->place && o->restore);
}
END_TEST

START_TEST(a_conversation_that_is_taken_leaves_nothing_behind)
{
	struct service from = started(CONF_HTTP), to = started(CONF_HTTP);

	ask(&from, GET);
	ask(&to, "GE");
	service_take(&to, &from);
	ck_assert_int_eq(service_place(&to), SERVICE_ASKING);
	ck_assert_uint_eq(service_head_under_way(&to), 0);
	ck_assert_ptr_null(from.state);
	service_destroy(&from);
	service_destroy(&to);
}
END_TEST

static void add(TCase *t)
{
	service_blocks_init(&blocks);
	tcase_add_test(t, between_exchanges_http_holds_no_follower_and_moves_all_the_same);
	tcase_add_loop_test(t, an_answer_cut_off_is_one_even_when_http_has_become_tcp, 0,
		2 * (int)(sizeof doubted_ends / sizeof doubted_ends[0]));
	tcase_add_loop_test(t, tcp_is_at_a_checkpoint_before_its_first_byte_only, 0, 2);
	tcase_add_test(t, a_tcp_backend_is_never_used_again_and_its_end_is_whole);
	tcase_add_test(t, tcp_has_no_words_for_a_backend_out_of_reach);
	tcase_add_loop_test(t, http_stands_where_its_messages_end, 0, CONVERSATIONS);
	tcase_add_loop_test(t, an_http_backend_is_used_again_between_answers_that_let_it, 0, CONVERSATIONS);
	tcase_add_loop_test(t, an_end_is_whole_where_http_shows_it, 0, CONVERSATIONS);
	tcase_add_loop_test(t, bad_gateway_is_said_to_one_request_without_an_answer, 0, CONVERSATIONS);
	tcase_add_loop_test(
		t, only_whole_interim_answers_are_no_part_of_an_answer, 0, (int)(sizeof pieces / sizeof pieces[0]));
	tcase_add_loop_test(t, open_requests_are_repeated_as_the_strictest_of_them_allows, 0,
		(int)(sizeof repeats / sizeof repeats[0]));
	tcase_add_loop_test(t, doubt_makes_tcp_of_http_for_good, 0, 3);
	tcase_add_loop_test(t, a_conversation_that_moves_stands_where_it_stood, 0, CONVERSATIONS);
	tcase_add_test(t, tcp_moves_without_a_state);
	tcase_add_test(t, a_state_that_cannot_be_restored_makes_tcp);
	tcase_add_loop_test(t, each_service_has_the_operations_that_its_traits_demand, 0, CONF_SERVICE_COUNT);
	tcase_add_test(t, a_conversation_that_is_taken_leaves_nothing_behind);
}

UNIT(service)
{
	return run_suite("service", add);
}
