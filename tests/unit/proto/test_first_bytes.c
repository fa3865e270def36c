/* test_first_bytes.c: facts of how connections begin that are no handshake. */
#include <string.h>

#include "proto/first_bytes.h"
#include "proto/tls_record.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1
#define NONE        -1
#define SENTENCE    -2

static const struct row {
	const uint8_t *bytes;
	size_t len;
	enum first_bytes what;
	int told; /* the answer: an alert, NONE or SENTENCE */
	enum end_reason reason;
} rows[] = {
	{ BYTES("GET / HTTP/1.1\r\n"), FIRST_BYTES_HTTP, SENTENCE, END_PLAIN_HTTP },
	{ BYTES("OPTIONS * HTTP/1.0\r\n"), FIRST_BYTES_HTTP, SENTENCE, END_PLAIN_HTTP },
	{ BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), FIRST_BYTES_HTTP, SENTENCE, END_PLAIN_HTTP },
	{ BYTES("PROXY TCP4 192.0.2.1 "), FIRST_BYTES_PROXY, TLS_ALERT_UNEXPECTED_MESSAGE,
		END_PROXY_HEADER_UNEXPECTED },
	{ BYTES("\r\n\r\n\0\r\nQUIT\n\x21"), FIRST_BYTES_PROXY, TLS_ALERT_UNEXPECTED_MESSAGE,
		END_PROXY_HEADER_UNEXPECTED },
	{ BYTES("\x80\x2e\x01\x00\x02\x00\x15"), FIRST_BYTES_SSLV2, TLS_ALERT_PROTOCOL_VERSION, END_NOT_TLS },
	{ BYTES("\x80\x2e\x01\x03\x01\x00\x15"), FIRST_BYTES_SSLV2, TLS_ALERT_PROTOCOL_VERSION, END_NOT_TLS },
	{ BYTES("\x14\x03\x03\x00\x01\x01"), FIRST_BYTES_OTHER_RECORD, TLS_ALERT_UNEXPECTED_MESSAGE, END_NOT_TLS },
	{ BYTES("\x17\x03\x03\x00\x01"), FIRST_BYTES_OTHER_RECORD, TLS_ALERT_UNEXPECTED_MESSAGE, END_NOT_TLS },
	{ BYTES("\x18\x03\x03\x00\x03"), FIRST_BYTES_OTHER_RECORD, TLS_ALERT_UNEXPECTED_MESSAGE, END_NOT_TLS },
	{ BYTES("\x16\x07\x00\x00\x04"), FIRST_BYTES_BAD_VERSION, TLS_ALERT_PROTOCOL_VERSION, END_NOT_TLS },
	{ BYTES("\x16\x03\x01\x70\x00"), FIRST_BYTES_TOO_LONG, TLS_ALERT_RECORD_OVERFLOW, END_NOT_TLS },
	{ BYTES("\x15\x03\x01\x00\x02\x01\x00"), FIRST_BYTES_OTHER, NONE, END_NOT_TLS },
	{ BYTES("\x17\x06\x03\x00\x01"), FIRST_BYTES_OTHER, NONE, END_NOT_TLS },
	{ BYTES("SSH-2.0-OpenSSH_9.2\r\n"), FIRST_BYTES_OTHER, NONE, END_NOT_TLS },
	{ BYTES("EHLO there\r\n"), FIRST_BYTES_OTHER, NONE, END_NOT_TLS },
	{ BYTES("GETTING"), FIRST_BYTES_OTHER, NONE, END_NOT_TLS },
	{ BYTES("\xff\xff\xff\xff\xff"), FIRST_BYTES_OTHER, NONE, END_NOT_TLS },
	{ BYTES("\0\0\0\0\0"), FIRST_BYTES_OTHER, NONE, END_NOT_TLS },
	{ BYTES("\x16\x03\x01\x02\x00\x01"), FIRST_BYTES_HANDSHAKE, NONE, END_NOT_TLS },
};
#define ROWS ((int)(sizeof rows / sizeof rows[0]))

START_TEST(each_is_known_by_its_first_bytes)
{
	ck_assert_int_eq(first_bytes_judge(rows[_i].bytes, rows[_i].len), rows[_i].what);
	ck_assert_int_eq(first_bytes_reason(rows[_i].what), rows[_i].reason);
}
END_TEST

/* The verdict about a part is that about the whole, or not known yet. */
START_TEST(a_part_of_it_is_the_same_or_not_known_yet)
{
	const struct row *row = &rows[_i];

	ck_assert_int_eq(first_bytes_judge(row->bytes, 0), FIRST_BYTES_INCOMPLETE);
	for (size_t len = 1; len < row->len; len++) {
		enum first_bytes what = first_bytes_judge(row->bytes, len);
		ck_assert(what == row->what || (what == FIRST_BYTES_INCOMPLETE && len < FIRST_BYTES_MAX));
	}
}
END_TEST

START_TEST(it_is_told_what_it_understands)
{
	const struct row *row = &rows[_i];
	size_t len;
	const uint8_t *answer = first_bytes_answer(row->what, &len);

	if (row->told == NONE) {
		ck_assert_uint_eq(len, 0);
	} else if (row->told == SENTENCE) {
		ck_assert_int_eq(memcmp(answer, "HTTP/1.1 400 ", 13), 0);
	} else {
		const uint8_t alert[] = { TLS_ALERT, 3, 3, 0, 2, TLS_ALERT_FATAL, (uint8_t)row->told };
		ck_assert_uint_eq(len, sizeof alert);
		ck_assert_mem_eq(answer, alert, sizeof alert);
	}
}
END_TEST

UNIT(first_bytes)
{
	Suite *s = suite_create("first_bytes");
	TCase *each = tcase_create("each beginning");
	SRunner *r = srunner_create(s);

	tcase_add_loop_test(each, each_is_known_by_its_first_bytes, 0, ROWS);
	tcase_add_loop_test(each, a_part_of_it_is_the_same_or_not_known_yet, 0, ROWS);
	tcase_add_loop_test(each, it_is_told_what_it_understands, 0, ROWS);
	suite_add_tcase(s, each);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
