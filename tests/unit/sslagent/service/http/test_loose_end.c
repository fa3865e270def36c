/* test_loose_end.c: facts of answers that the strict parser does not understand: which of them may end with FIN. */
#include <string.h>

#include "sslagent/service/http/loose_end.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

static const struct {
	const char *answer;
	int is_whole, is_whole_to_head;
} answers[] = {
	{ "HTTP/1.1 200 OK\nServer: old\n\nbody", 1, 1 }, /* CGIs and devices */
	{ "HTTP/1.0 200 OK\nServer: old\r\n\r\n", 1, 1 },
	{ "ICY 200 OK\r\nicy-name: x\r\n\r\nmusic", 1, 1 },
	{ "HTTP/1.1 200 OK\r\nX: \x01\r\n\r\nbody", 1, 1 },
	{ "HTTP/1.1 200 OK\nContent-Length: 4\n\nbody", 1, 1 },
	{ "HTTP/1.1 200 OK\nContent-Length: 4\n\nbody and more", 1, 1 },
	{ "HTTP/1.1 200 OK\nContent-Length: 4\nContent-Length: 4\n\nbody", 1, 1 },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 4\r\n\r\nbody", 1, 1 },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nbody", 1, 1 },
	{ "HTTP/1.1 304 x\nETag: x\n\n", 1, 1 },
	{ "HTTP/1.1 304 x\nContent-Length: 9\n\n", 1, 1 },
	/* short of a length */
	{ "HTTP/1.1 200 OK\nContent-Length: 5\n\nbody", 0, 1 },
	{ "HTTP/1.1 200 OK\ncontent-length : 5\n\nbody", 0, 1 },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nbody", 0, 1 },
	/* of no length that is known */
	{ "HTTP/1.1 200 OK\nContent-Length: 4\nContent-Length: 5\n\nbody", 0, 0 },
	{ "HTTP/1.1 200 OK\nContent-Length: 4, 4\n\nbody", 0, 0 },
	{ "HTTP/1.1 200 OK\nContent-Length: -4\n\nbody", 0, 0 },
	{ "HTTP/1.1 200 OK\nContent-Length:\n 4\n\nbody", 0, 0 },
	{ "HTTP/1.1 200 OK\nContent-Length\n\nbody", 0, 0 },
	{ "HTTP/1.1 200 OK\nContent-Length: 1234567890123456789\n\nbody", 0, 0 },
	{ "HTTP/1.1 200 OK\nContent-Length:                                                       5\n\nbody", 0, 0 },
	{ "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n4\nbody\n0\n\n", 0, 0 },
	{ "HTTP/1.1 200 OK\nTransfer-Encoding: identity, chunked\n\n0\n\n", 0, 0 },
	{ "HTTP/1.1 200 OK\nTransfer-Encoding:\n chunked\n\n0\n\n", 0, 0 },
	{ "HTTP/1.1 200 OK\nX: y\rContent-Length: 5\n\nbody", 0, 0 },
	{ "HTTP/1.1 200 OK\nX: 0123456789012345678901234567890123456789012345678901234567890123456789\rContent-Length: "
	  "5\n\n",
		0, 0 },
	/* no head, or not all of it */
	{ "", 0, 0 },
	{ "HTTP/1.1 200 OK\n", 0, 0 },
	{ "HTTP/1.1 200 OK\nX: y\n", 0, 0 },
	{ "HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\n\n", 0, 0 },
	{ "HTTP/1.1  100 Continue\n\nHTTP/1.1 200 OK\n\n", 0, 0 },
	{ "HTTP/1.1 200 OK\n Content-Length: 9\n\nbody", 0, 0 },
	{ "HTTP/1.1 200 OK\nTransfer-Encoding: identity\n , chunked\n\n4\nbody", 0, 0 },
	{ "<html></html>\n\n", 0, 0 },
};

START_TEST(an_answer_is_whole_if_nothing_in_its_head_says_more)
{
	for (size_t step = 1; step < 100; step++) {
		const char *answer = answers[_i].answer;
		struct loose_end l = { 0 };
		for (size_t at = 0, len = strlen(answer); at < len; at += step)
			loose_end_follow(&l, (const uint8_t *)answer + at, len - at < step ? len - at : step);
		ck_assert_int_eq(loose_end_is_whole(&l, 0), answers[_i].is_whole);
		ck_assert_int_eq(loose_end_is_whole(&l, 1), answers[_i].is_whole_to_head);
	}
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(
		t, an_answer_is_whole_if_nothing_in_its_head_says_more, 0, (int)(sizeof answers / sizeof answers[0]));
}

UNIT(loose_end)
{
	return run_suite("loose_end", add);
}
