/* test_control_clients.c: facts of clients and their requests, whatever they ask: an owner that has neither routes nor
 * tokens answers them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ragent/control/http/control_clients.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

static struct ragent_counters counters;
static struct control_clients clients;

/* What its owner does, and what it was asked. */
static struct {
	enum { REFUSES, ANSWERS, WAITS } does;
	unsigned asked;
	struct control_request *request;
	char method[16], path[64];
} owner;

static bool may_ask(void *ctx, struct exchange *e)
{
	ck_assert_ptr_eq(ctx, &owner);
	if (owner.does != REFUSES)
		return true;
	exchange_header(e, "Allow", "nobody");
	return exchange_fail(e, MHD_HTTP_FORBIDDEN, "not you, %s", e->client->common_name);
}

static void follow(void *ctx, struct exchange *e)
{
	owner.asked++;
	snprintf(owner.method, sizeof owner.method, "%s", e->method);
	snprintf(owner.path, sizeof owner.path, "%s", e->path);
	if (owner.does == WAITS) {
		owner.request = exchange_ask(e);
		return;
	}
	json_t *body = exchange_body(e);
	if (body)
		exchange_answer(e, MHD_HTTP_OK, body);
}

static void begin(uint32_t answer_ms)
{
	const struct control_limits limits = {
		.client_ms = WAIT_LIMIT_MS, .answer_ms = answer_ms, .local = 2, .remote = 2, .of_source = 1
	};
	memset(&counters, 0, sizeof counters);
	memset(&owner, 0, sizeof owner);
	owner.does = ANSWERS;
	clients = (struct control_clients){ .counters = &counters };
	clients.exchanges = (struct exchanges){
		.worker = w, .limits = limits, .may_ask = may_ask, .follow = follow, .owner = &owner
	};
	ck_assert_int_eq(control_clients_begin(&clients), 0);
}

/* The client's end of a connection to the UNIX socket; the other end is admitted with the name @cn. */
static int enter(const char *cn)
{
	const struct sockaddr_storage local = { .ss_family = AF_UNIX };
	int fds[2];

	socket_pair(OVER_UNIX, fds);
	control_clients_admit(&clients, fds[1], &local, cn);
	return fds[0];
}

static void ask(int fd, const char *head, const char *body)
{
	char text[512];

	snprintf(
		text, sizeof text, "%s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s", head, strlen(body), body);
	write_all(fd, text, strlen(text));
}

/* The answer begins with @status and has @part. */
static void expect(int fd, const char *status, const char *part)
{
	static char text[4096];
	size_t len = 0;
	int ended = 0;

	memset(text, 0, sizeof text);
	wait_until((len += (size_t)read_some(fd, text + len, sizeof text - 1 - len, &ended), strstr(text, part)));
	ck_assert_msg(strncmp(text, "HTTP/1.1 ", 9) == 0 && strncmp(text + 9, status, strlen(status)) == 0, "%s", text);
}

START_TEST(a_request_gets_its_answer_within_the_call)
{
	begin(WAIT_LIMIT_MS);
	int fd = enter("");
	ask(fd, "POST /a/path", "{\"of\": \"it\"}");
	expect(fd, "200", "\"of\": \"it\"");
	ck_assert_str_eq(owner.method, "POST");
	ck_assert_str_eq(owner.path, "/a/path");
	close(fd);
	control_clients_end(&clients);
}
END_TEST

START_TEST(a_request_gets_its_answer_later)
{
	begin(WAIT_LIMIT_MS);
	owner.does = WAITS;
	int fd = enter("");
	ask(fd, "GET /", "");
	wait_until(owner.request);
	request_answer(owner.request, MHD_HTTP_ACCEPTED, json_pack("{s:i}", "number", 7));
	expect(fd, "202", "\"number\": 7");
	close(fd);
	control_clients_end(&clients);
}
END_TEST

START_TEST(who_may_not_ask_is_told_and_its_body_is_not_read)
{
	begin(WAIT_LIMIT_MS);
	owner.does = REFUSES;
	int fd = enter("Mallory");
	ask(fd, "POST /", "{}");
	expect(fd, "403", "not you, Mallory");
	ck_assert_uint_eq(owner.asked, 0);
	close(fd);
	control_clients_end(&clients);
}
END_TEST

START_TEST(an_answer_that_does_not_come_is_504_and_may_still_come)
{
	begin(60);
	owner.does = WAITS;
	int fd = enter("");
	ask(fd, "GET /", "");
	expect(fd, "504", "what was asked may still happen");
	request_fail(owner.request, MHD_HTTP_CONFLICT, "too late"); /* into nothing */
	close(fd);
	control_clients_end(&clients);
}
END_TEST

START_TEST(a_body_that_is_no_object_is_refused)
{
	begin(WAIT_LIMIT_MS);
	int fd = enter("");
	ask(fd, "POST /", "[1]");
	expect(fd, "400", "the body is not a JSON object");
	ask(fd, "POST /", "{");
	expect(fd, "400", "the body is not JSON: line 1");
	close(fd);
	control_clients_end(&clients);
}
END_TEST

START_TEST(those_that_wait_at_the_end_are_told)
{
	begin(WAIT_LIMIT_MS);
	owner.does = WAITS;
	int fd = enter("");
	ask(fd, "GET /", "");
	wait_until(owner.request);
	control_clients_end(&clients);
	expect(fd, "503", "stopping");
	request_answer(owner.request, MHD_HTTP_OK, json_object()); /* into nothing */
	close(fd);
}
END_TEST

START_TEST(the_oldest_silent_client_gives_way)
{
	begin(WAIT_LIMIT_MS);
	int first = enter(""), second = enter("");
	turns(5);
	int third = enter("");
	ck_assert_int_eq(read_to_end(first), 0);
	ck_assert_uint_eq(counter_get(&counters.control_no_room), 1);
	ask(third, "GET /", "");
	expect(third, "200", "{}");
	close(first);
	close(second);
	close(third);
	control_clients_end(&clients);
}
END_TEST

UNIT(control_clients)
{
	const TTest *const facts[] = { a_request_gets_its_answer_within_the_call, a_request_gets_its_answer_later,
		who_may_not_ask_is_told_and_its_body_is_not_read,
		an_answer_that_does_not_come_is_504_and_may_still_come, a_body_that_is_no_object_is_refused,
		those_that_wait_at_the_end_are_told, the_oldest_silent_client_gives_way };

	return worker_suite_run("control clients", facts, FACTS_LEN(facts));
}
