/* test_handover_message.c: facts of messages between two RAgent processes: bytes, descriptors, limits, and buffers that
 * keep nothing.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/error.h"
#include "ragent/handover/handover_message.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

static int ends[2];
static struct handover_message in, out;

static void setup(void)
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
}

static void teardown(void)
{
	handover_message_clear(&in);
	handover_message_clear(&out);
	close(ends[0]);
	close(ends[1]);
}

static int fd_is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

START_TEST(bytes_and_type_arrive)
{
	handover_message_begin(&out, HANDOVER_WORKER);
	ck_assert_int_eq(handover_message_put(&out, "hello", 5), 0);
	ck_assert_int_eq(handover_channel_send(ends[0], &out, 1000), 0);
	ck_assert_int_eq(handover_channel_receive(ends[1], &in, 1000), 0);
	ck_assert_uint_eq(in.type, HANDOVER_WORKER);
	ck_assert_uint_eq(in.len, 5);
	ck_assert_mem_eq(in.data, "hello", 5);
}
END_TEST

static void *send_out(void *arg)
{
	return (void *)(intptr_t)handover_channel_send(ends[0], &out, 20000);
}

START_TEST(more_than_the_socket_holds_arrives)
{
	const size_t len = (size_t)5 << 20;
	pthread_t sender;
	void *result;

	handover_message_begin(&out, HANDOVER_CONNECTIONS);
	uint8_t *room = handover_message_room(&out, len);
	for (size_t i = 0; i < len; i++)
		room[i] = (uint8_t)(i * 31 >> 3);
	ck_assert_int_eq(pthread_create(&sender, NULL, send_out, NULL), 0);
	ck_assert_int_eq(handover_channel_receive(ends[1], &in, 20000), 0);
	pthread_join(sender, &result);
	ck_assert_int_eq((int)(intptr_t)result, 0);
	ck_assert_uint_eq(in.len, len);
	ck_assert_mem_eq(in.data, room, len);
}
END_TEST

START_TEST(as_many_descriptors_as_may_go_arrive_in_order)
{
	unsigned before = open_descriptors();
	int pipes[2];

	ck_assert_int_eq(pipe(pipes), 0);
	handover_message_begin(&out, HANDOVER_CONNECTIONS);
	ck_assert_int_eq(handover_message_put(&out, "x", 1), 0);
	for (unsigned i = 0; i < HANDOVER_FDS_MAX; i++)
		handover_message_put_fd(&out, pipes[i % 2]);
	ck_assert_int_eq(handover_channel_send(ends[0], &out, 1000), 0);
	ck_assert_int_eq(handover_channel_receive(ends[1], &in, 1000), 0);
	ck_assert_uint_eq(in.fd_count, HANDOVER_FDS_MAX);
	ck_assert_uint_eq(open_descriptors(), before + 2 + HANDOVER_FDS_MAX);
	for (unsigned i = 0; i < HANDOVER_FDS_MAX; i++) {
		int fd = handover_message_take_fd(&in);
		ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, i % 2 ? O_WRONLY : O_RDONLY);
		close(fd);
	}
	ck_assert_int_eq(handover_message_take_fd(&in), -1);
	close(pipes[0]);
	close(pipes[1]);
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

START_TEST(the_next_message_can_be_known_before_it_is_taken)
{
	unsigned before = open_descriptors();

	ck_assert_int_eq(handover_channel_next_is(ends[1], HANDOVER_COMMIT), 0); /* there is none */
	handover_message_begin(&out, HANDOVER_LINK);
	handover_message_put_fd(&out, ends[0]);
	ck_assert_int_eq(handover_channel_send(ends[0], &out, 1000), 0);
	ck_assert_int_eq(handover_channel_say(ends[0], HANDOVER_COMMIT, "", 1000), 0);
	ck_assert_int_eq(handover_channel_next_is(ends[1], HANDOVER_COMMIT), 0);
	ck_assert_int_eq(handover_channel_next_is(ends[1], HANDOVER_LINK), 1);
	ck_assert_uint_eq(open_descriptors(), before);
	ck_assert_int_eq(handover_channel_receive(ends[1], &in, 1000), 0);
	ck_assert_uint_eq(in.fd_count, 1);
	ck_assert_int_eq(handover_channel_next_is(ends[1], HANDOVER_COMMIT), 1);
	ck_assert_int_eq(handover_channel_receive(ends[1], &in, 1000), 0);
	ck_assert_int_eq(in.type, HANDOVER_COMMIT);
	shutdown(ends[0], SHUT_RDWR);
	ck_assert_int_eq(handover_channel_next_is(ends[1], HANDOVER_COMMIT), 0);
}
END_TEST

START_TEST(descriptors_that_nobody_took_are_closed)
{
	unsigned before = open_descriptors();

	handover_message_begin(&out, HANDOVER_LINK);
	handover_message_put_fd(&out, ends[0]);
	handover_message_put_fd(&out, ends[0]);
	ck_assert_int_eq(handover_channel_send(ends[0], &out, 1000), 0);
	ck_assert_int_eq(handover_channel_receive(ends[1], &in, 1000), 0);
	ck_assert_uint_eq(open_descriptors(), before + 2);
	handover_message_clear(&in);
	handover_message_clear(&out);
	ck_assert_uint_eq(open_descriptors(), before);
	ck_assert(fd_is_open(ends[0])); /* lent, not given */
}
END_TEST

START_TEST(silence_ends_at_the_limit)
{
	ck_assert_int_eq(handover_channel_receive(ends[1], &in, 20), UV_ETIMEDOUT);
}
END_TEST

START_TEST(a_reader_that_stands_still_ends_the_sending_at_the_limit)
{
	handover_message_begin(&out, HANDOVER_CONNECTIONS);
	ck_assert_ptr_nonnull(handover_message_room(&out, (size_t)4 << 20));
	ck_assert_int_eq(handover_channel_send(ends[0], &out, 50), UV_ETIMEDOUT);
}
END_TEST

START_TEST(the_other_s_end_is_told)
{
	shutdown(ends[0], SHUT_RDWR);
	ck_assert_int_eq(handover_channel_receive(ends[1], &in, 1000), UV_EOF);
	handover_message_begin(&out, HANDOVER_TAKE);
	ck_assert_int_eq(handover_channel_send(ends[1], &out, 1000), UV_EPIPE);
}
END_TEST

START_TEST(an_end_in_the_middle_of_a_message_is_told)
{
	static const uint8_t header[8] = { 0, 0, 0, 9, HANDOVER_WORKER };

	write_all(ends[0], header, sizeof header);
	write_all(ends[0], "1234", 4);
	shutdown(ends[0], SHUT_WR);
	ck_assert_int_eq(handover_channel_receive(ends[1], &in, 1000), UV_EOF);
}
END_TEST

START_TEST(a_header_that_cannot_be_is_refused)
{
	static const uint8_t unknown[8] = { 0, 0, 0, 0, HANDOVER_TYPE_END };
	static const uint8_t too_long[8] = { 0xff, 0, 0, 0, HANDOVER_WORKER };
	static const uint8_t without_fd[8] = { 0, 0, 0, 0, HANDOVER_LINK, 0, 0, 1 };

	write_all(ends[0], unknown, sizeof unknown);
	ck_assert_int_eq(handover_channel_receive(ends[1], &in, 1000), CSSL_E_TYPE);
	write_all(ends[0], too_long, sizeof too_long);
	ck_assert_int_eq(handover_channel_receive(ends[1], &in, 1000), CSSL_E_TOO_LONG);
	write_all(ends[0], without_fd, sizeof without_fd);
	ck_assert_int_eq(handover_channel_receive(ends[1], &in, 1000), UV_EMFILE);
}
END_TEST

START_TEST(a_message_that_nobody_read_is_known_and_none_follows)
{
	ck_assert_int_eq(handover_channel_say(ends[0], HANDOVER_COMMIT, "", 1000), 0);
	ck_assert_int_eq(handover_channel_ends_with(ends[1], HANDOVER_COMMIT), 1);
	ck_assert_int_lt(handover_channel_say(ends[0], HANDOVER_COMMIT, "", 1000), 0);
}
END_TEST

START_TEST(what_was_not_sent_before_cannot_be_sent)
{
	ck_assert_int_eq(handover_channel_ends_with(ends[1], HANDOVER_COMMIT), 0);
	ck_assert_int_lt(handover_channel_say(ends[0], HANDOVER_COMMIT, "", 1000), 0);
}
END_TEST

START_TEST(other_messages_that_nobody_read_are_no_commit)
{
	const enum handover_type first = _i == 0 ? HANDOVER_LINK : HANDOVER_COMMIT;

	ck_assert_int_eq(handover_channel_say(ends[0], first, "", 1000), 0);
	ck_assert_int_eq(handover_channel_say(ends[0], HANDOVER_LINK, _i == 0 ? "" : "more", 1000), 0);
	ck_assert_int_eq(handover_channel_ends_with(ends[1], HANDOVER_COMMIT), 0);
}
END_TEST

START_TEST(a_number_that_is_no_channel_ends_with_nothing)
{
	const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(handover_channel_ends_with(file, HANDOVER_COMMIT), 0);
	ck_assert_int_eq(handover_channel_ends_with(-1, HANDOVER_COMMIT), 0);
	close(file);
}
END_TEST

/* As of a client, if the number is not the channel's. */
START_TEST(a_tcp_connection_is_not_shut_down)
{
	int fds[2];

	socket_pair(OVER_TCP4, fds);
	ck_assert_int_eq(handover_channel_ends_with(fds[0], HANDOVER_COMMIT), 0);
	ck_assert_int_eq(send(fds[0], "x", 1, MSG_NOSIGNAL), 1);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

START_TEST(a_sentence_is_printable)
{
	char text[16];

	ck_assert_int_eq(handover_channel_say(ends[0], HANDOVER_REFUSED, "no\n way\x7f at all, really", 1000), 0);
	ck_assert_int_eq(handover_channel_receive(ends[1], &in, 1000), 0);
	handover_sentence(&in, text, sizeof text);
	ck_assert_str_eq(text, "no? way? at all");
}
END_TEST

START_TEST(a_message_is_wiped_when_the_next_begins)
{
	handover_message_begin(&out, HANDOVER_LINK);
	ck_assert_int_eq(handover_message_put(&out, "secret", 6), 0);
	handover_message_begin(&out, HANDOVER_LINK);
	ck_assert_mem_eq(out.data, "\0\0\0\0\0\0", 6);
}
END_TEST

UNIT(handover_message)
{
	const TTest *const facts[] = {
		bytes_and_type_arrive,
		more_than_the_socket_holds_arrives,
		as_many_descriptors_as_may_go_arrive_in_order,
		the_next_message_can_be_known_before_it_is_taken,
		descriptors_that_nobody_took_are_closed,
		silence_ends_at_the_limit,
		a_reader_that_stands_still_ends_the_sending_at_the_limit,
		the_other_s_end_is_told,
		an_end_in_the_middle_of_a_message_is_told,
		a_header_that_cannot_be_is_refused,
		a_message_that_nobody_read_is_known_and_none_follows,
		what_was_not_sent_before_cannot_be_sent,
		a_number_that_is_no_channel_ends_with_nothing,
		a_tcp_connection_is_not_shut_down,
		a_sentence_is_printable,
		a_message_is_wiped_when_the_next_begins,
	};
	Suite *suite = suite_create("handover_channel");
	TCase *all = tcase_create("handover_channel");

	suite_add_tcase(suite, all);
	tcase_add_checked_fixture(all, setup, teardown);
	for (size_t i = 0; i < FACTS_LEN(facts); i++)
		tcase_add_test(all, facts[i]);
	tcase_add_loop_test(all, other_messages_that_nobody_read_are_no_commit, 0, 2);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
