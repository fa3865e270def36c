/* test_control.c: facts of the control socket: its file, its clients, answers that come late, never, or into nothing.
 */
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/ragent/control/control_fixture.h"
#include "tests/unit/unit.h"

static void answer_move(struct control_request *r, int epoch)
{
	request_answer(r, MHD_HTTP_OK, json_pack("{s:s, s:i}", "to", "a2", "epoch", epoch));
}
#define MOVE_PATH "/v1/connections/" ID_TEXT "/move"
#define MOVE_BODY "{\"agent\": \"a2\"}"

/* The file */

START_TEST(the_socket_is_for_its_owner_alone)
{
	struct stat st;
	ck_assert_int_eq(stat(control_path, &st), 0);
	ck_assert(S_ISSOCK(st.st_mode));
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
}
END_TEST

START_TEST(the_file_is_removed_at_the_end)
{
	control_stop();
	ck_assert_int_ne(access(control_path, F_OK), 0);
}
END_TEST

START_TEST(a_successors_file_is_not_removed)
{
	ck_assert_int_eq(unlink(control_path), 0);
	FILE *f = fopen(control_path, "w");
	ck_assert_ptr_nonnull(f);
	fclose(f);
	control_stop();
	ck_assert_int_eq(access(control_path, F_OK), 0);
}
END_TEST

static struct operations not_asked;

static struct control *second(char error[static 256])
{
	return control_create(w, -1, control_path, &not_asked, NULL, error, 256);
}

START_TEST(a_socket_in_use_is_left_alone)
{
	char error[256], expected[256];
	ck_assert_ptr_null(second(error));
	snprintf(expected, sizeof expected, "control socket '%s': address already in use", control_path);
	ck_assert_str_eq(error, expected);
	struct reply r = client_get("GET", "/v1", NULL);
	ck_assert_uint_eq(r.status, 200);
	reply_free(&r);
}
END_TEST

START_TEST(a_file_that_is_no_socket_is_left_alone)
{
	char error[256];
	struct stat st;
	control_stop();
	FILE *f = fopen(control_path, "w");
	ck_assert_ptr_nonnull(f);
	fclose(f);
	ck_assert_ptr_null(second(error));
	ck_assert_int_eq(stat(control_path, &st), 0);
	ck_assert(S_ISREG(st.st_mode));
}
END_TEST

START_TEST(a_stale_socket_is_replaced)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char error[256];
	control_stop();
	strcpy(address.sun_path, control_path);
	int stale = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(stale, (struct sockaddr *)&address, sizeof address), 0);
	close(stale);
	control = second(error);
	ck_assert_msg(control != NULL, "%s", error);
	struct reply r = client_get("GET", "/v1", NULL);
	ck_assert_uint_eq(r.status, 200);
	reply_free(&r);
}
END_TEST

START_TEST(a_path_that_is_too_long_is_refused)
{
	char path[200], error[300];
	memset(path, 'x', sizeof path - 1);
	path[sizeof path - 1] = '\0';
	ck_assert_ptr_null(control_create(w, -1, path, &not_asked, NULL, error, sizeof error));
	ck_assert_ptr_nonnull(strstr(error, "path longer than 107 bytes"));
}
END_TEST

START_TEST(destroying_nothing_is_legal)
{
	control_destroy(NULL);
}
END_TEST

/* Answers */

START_TEST(an_answer_can_come_later)
{
	int fd = client_ask("POST", MOVE_PATH, MOVE_BODY);
	turns(20);
	answer_move(asked.request, 3);
	struct reply r = client_read(fd);
	ck_assert_uint_eq(r.status, 200);
	ck_assert_str_eq(r.type, "application/json");
	ck_assert_str_eq(json_string_value(json_object_get(r.body, "to")), "a2");
	reply_free(&r);
	close(fd);
}
END_TEST

START_TEST(an_answer_can_come_from_within_the_call)
{
	struct reply r = client_get("POST", "/v1/keys/rotate", NULL);
	ck_assert_uint_eq(r.status, 200);
	ck_assert_uint_eq(json_array_size(json_object_get(r.body, "done")), 2);
	reply_free(&r);
}
END_TEST

START_TEST(answers_find_their_clients_in_any_order)
{
	int fd[3];
	struct control_request *request[3];
	for (int i = 0; i < 3; i++) {
		fd[i] = client_ask("POST", MOVE_PATH, MOVE_BODY);
		request[i] = asked.request;
	}
	for (int i = 2; i >= 0; i--)
		answer_move(request[i], i);
	for (int i = 0; i < 3; i++) {
		struct reply r = client_read(fd[i]);
		ck_assert_int_eq(json_integer_value(json_object_get(r.body, "epoch")), i);
		reply_free(&r);
		close(fd[i]);
	}
}
END_TEST

START_TEST(a_connection_serves_many_requests)
{
	int fd = client_connect();
	for (int i = 0; i < 5; i++) {
		const unsigned calls = asked.calls;
		client_request(fd, "POST", MOVE_PATH, MOVE_BODY);
		wait_until(asked.calls > calls);
		answer_move(asked.request, 3);
		struct reply r = client_read(fd);
		ck_assert_uint_eq(r.status, 200);
		reply_free(&r);
	}
	close(fd);
}
END_TEST

START_TEST(requests_sent_together_are_answered_one_after_the_other)
{
	int fd = client_connect();
	client_send(fd, "POST /v1/keys/rotate HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n");
	struct reply first = client_read(fd);
	ck_assert_ptr_nonnull(json_object_get(first.body, "done"));
	wait_until(asked.what && strcmp(asked.what, "status") == 0);
	request_answer(asked.request, MHD_HTTP_OK, json_pack("{s:s}", "name", "r1"));
	struct reply next = client_read(fd);
	ck_assert_str_eq(json_string_value(json_object_get(next.body, "name")), "r1");
	reply_free(&first);
	reply_free(&next);
	close(fd);
}
END_TEST

START_TEST(a_client_that_left_can_still_be_answered)
{
	int fd = client_ask("POST", MOVE_PATH, MOVE_BODY);
	close(fd);
	turns(20);
	answer_move(asked.request, 3);
	turns(20);
	struct reply r = client_get("GET", "/v1", NULL);
	ck_assert_uint_eq(r.status, 200);
	reply_free(&r);
}
END_TEST

START_TEST(a_client_that_waits_at_the_end_is_told)
{
	int fd = client_ask("POST", MOVE_PATH, MOVE_BODY);
	control_stop();
	struct reply r = client_read(fd);
	ck_assert_uint_eq(r.status, 503);
	ck_assert_str_eq(r.error, "stopping");
	reply_free(&r);
	answer_move(asked.request, 3); /* into nothing */
	close(fd);
}
END_TEST

START_TEST(a_request_that_came_too_late_is_not_asked)
{
	int waiting = client_ask("POST", MOVE_PATH, MOVE_BODY), late = client_connect();
	client_send(late, "GET /v1/status HTTP/1.1\r\nHost: x\r\n");
	turns(20);
	client_send(late, "\r\n");
	control_stop(); /* which runs libmicrohttpd a last time */
	ck_assert_str_eq(asked.what, "move");
	struct reply r = client_read(late);
	ck_assert_uint_eq(r.status, 503);
	reply_free(&r);
	request_fail(asked.request, MHD_HTTP_CONFLICT, "no");
	close(waiting);
	close(late);
}
END_TEST

/* Bounds */

START_TEST(a_body_announced_too_long_is_refused_before_it_is_sent)
{
	int fd = client_connect();
	client_send(fd, "POST /v1/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\n");
	struct reply r = client_read(fd);
	ck_assert_uint_eq(r.status, 413);
	ck_assert_str_eq(r.error, "the body is longer than 65536 bytes");
	ck_assert_uint_eq(asked.calls, 0);
	reply_free(&r);
	close(fd);
}
END_TEST

START_TEST(a_body_that_turns_out_too_long_is_refused)
{
	static char chunk[0x2000 + 1];
	int fd = client_connect();
	memset(chunk, ' ', sizeof chunk - 1);
	client_send(fd, "POST /v1/reload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 9; i++) {
		client_send(fd, "2000\r\n");
		client_send(fd, chunk);
		client_send(fd, "\r\n");
	}
	client_send(fd, "0\r\n\r\n");
	struct reply r = client_read(fd);
	ck_assert_uint_eq(r.status, 413);
	ck_assert_uint_eq(asked.calls, 0);
	reply_free(&r);
	close(fd);
}
END_TEST

START_TEST(a_body_of_the_largest_size_is_taken)
{
	static char body[65536 + 1];
	int fd = client_connect();
	memset(body, ' ', sizeof body - 1);
	memcpy(body, "{}", 2);
	client_send(fd, "POST /v1/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 65536\r\n\r\n");
	client_send(fd, body);
	wait_until(asked.calls == 1);
	request_fail(asked.request, MHD_HTTP_SERVICE_UNAVAILABLE, "no agent is up");
	struct reply r = client_read(fd);
	ck_assert_uint_eq(r.status, 503);
	reply_free(&r);
	close(fd);
}
END_TEST

START_TEST(bytes_that_are_no_http_are_refused)
{
	int fd = client_connect();
	client_send(fd, "\x16\x03\x01\x02\x01 nonsense\r\n\r\n");
	ck_assert_int_eq(read_to_end(fd), 0);
	ck_assert_uint_eq(asked.calls, 0);
	close(fd);
}
END_TEST

START_TEST(failures_have_their_status_and_reason)
{
	int fd = client_ask("GET", "/v1/status", NULL);
	request_fail(asked.request, MHD_HTTP_CONFLICT, "because of %d", 7);
	struct reply r = client_read(fd);
	ck_assert_uint_eq(r.status, 409);
	ck_assert_str_eq(r.error, "because of 7");
	reply_free(&r);
	close(fd);
}
END_TEST

/* Time: the client has 60 ms, in the first fact also the operation; there are 3 connections. */

START_TEST(an_answer_too_late_is_504_and_then_goes_into_nothing)
{
	int fd = client_ask("POST", MOVE_PATH, MOVE_BODY);
	struct reply r = client_read(fd);
	ck_assert_uint_eq(r.status, 504);
	ck_assert_str_eq(r.error, "no answer after 60 ms; what was asked may still happen");
	answer_move(asked.request, 3);
	reply_free(&r);
	close(fd);
}
END_TEST

START_TEST(a_client_that_says_nothing_is_closed)
{
	int fd = client_connect();
	ck_assert_int_eq(read_to_end(fd), 0);
	close(fd);
}
END_TEST

START_TEST(a_client_that_drips_is_closed)
{
	static const char head[] = "POST /v1/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n";
	const uint64_t limit = now_ms() + WAIT_LIMIT_MS;
	char byte;
	size_t sent = 0;
	int end = 0, fd = client_connect();
	while (!end && send(fd, sent < sizeof head - 1 ? &head[sent] : " ", 1, MSG_NOSIGNAL) == 1) {
		ck_assert_msg(now_ms() < limit, "never closed");
		ck_assert_uint_lt(++sent, 60000);
		usleep(100); /* a slow client is what this is about */
		turn();
		if (read_some(fd, &byte, 1, &end) < 0)
			break;
	}
	ck_assert_uint_eq(asked.calls, 0);
	close(fd);
}
END_TEST

START_TEST(waiting_for_an_answer_is_not_the_clients_time)
{
	int fd = client_ask("POST", MOVE_PATH, MOVE_BODY);
	const uint64_t until = now_ms() + 200;
	wait_until(now_ms() > until);
	answer_move(asked.request, 3);
	struct reply r = client_read(fd);
	ck_assert_uint_eq(r.status, 200);
	reply_free(&r);
	close(fd);
}
END_TEST

START_TEST(a_client_that_does_not_read_is_closed)
{
	json_t *rows = json_array();
	int fd = client_ask("GET", "/v1/connections?limit=1000", NULL);
	for (size_t i = 0; i < CONTROL_LIMIT_MAX; i++)
		json_array_append_new(rows, json_sprintf("%500zu", i));
	request_answer(asked.request, MHD_HTTP_OK, json_pack("{s:o}", "connections", rows));
	const unsigned before = open_descriptors();
	wait_until(open_descriptors() == before - 1);
	close(fd);
}
END_TEST

START_TEST(one_client_too_many_is_closed_and_the_others_are_served)
{
	struct control_request *request[3];
	int fd[3];
	for (int i = 0; i < 3; i++) {
		fd[i] = client_ask("POST", MOVE_PATH, MOVE_BODY);
		request[i] = asked.request;
	}
	int fourth = client_connect();
	ck_assert_int_eq(read_to_end(fourth), 0);
	close(fourth);
	for (int i = 0; i < 3; i++) {
		answer_move(request[i], 3);
		struct reply r = client_read(fd[i]);
		ck_assert_uint_eq(r.status, 200);
		reply_free(&r);
		close(fd[i]);
	}
}
END_TEST

START_TEST(a_client_that_says_nothing_gives_way_to_a_new_one)
{
	int silent[3];
	for (int i = 0; i < 3; i++)
		silent[i] = client_connect();
	turns(5);
	struct reply r = client_get("GET", "/v1", NULL);
	ck_assert_uint_eq(r.status, 200);
	reply_free(&r);
	ck_assert_int_eq(read_to_end(silent[0]), 0);
	client_request(silent[2], "GET", "/v1", NULL);
	r = client_read(silent[2]);
	ck_assert_uint_eq(r.status, 200);
	reply_free(&r);
	for (int i = 0; i < 3; i++)
		close(silent[i]);
}
END_TEST

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

UNIT(control)
{
	const TTest *const facts[] = {
		the_socket_is_for_its_owner_alone,
		the_file_is_removed_at_the_end,
		a_successors_file_is_not_removed,
		a_socket_in_use_is_left_alone,
		a_file_that_is_no_socket_is_left_alone,
		a_stale_socket_is_replaced,
		a_path_that_is_too_long_is_refused,
		destroying_nothing_is_legal,
		an_answer_can_come_later,
		an_answer_can_come_from_within_the_call,
		answers_find_their_clients_in_any_order,
		a_connection_serves_many_requests,
		requests_sent_together_are_answered_one_after_the_other,
		a_client_that_left_can_still_be_answered,
		a_client_that_waits_at_the_end_is_told,
		a_request_that_came_too_late_is_not_asked,
		failures_have_their_status_and_reason,
		a_body_announced_too_long_is_refused_before_it_is_sent,
		a_body_that_turns_out_too_long_is_refused,
		a_body_of_the_largest_size_is_taken,
		bytes_that_are_no_http_are_refused,
	};

	const TTest *const hurried_facts[] = {
		an_answer_too_late_is_504_and_then_goes_into_nothing,
		a_client_that_says_nothing_is_closed,
		a_client_that_drips_is_closed,
	};

	const TTest *const patient_facts[] = {
		waiting_for_an_answer_is_not_the_clients_time,
		a_client_that_does_not_read_is_closed,
		one_client_too_many_is_closed_and_the_others_are_served,
	};

	const TTest *const crowded_facts[] = {
		a_client_that_says_nothing_gives_way_to_a_new_one,
	};

	return control_facts_run("control crowded", setup_control_crowded, crowded_facts, COUNT(crowded_facts)) |
	       control_facts_run("control", setup_control, facts, COUNT(facts)) |
	       control_facts_run("control hurried", setup_control_hurried, hurried_facts, COUNT(hurried_facts)) |
	       control_facts_run("control patient", setup_control_patient, patient_facts, COUNT(patient_facts));
}
