/* control_fixture.c: see control_fixture.h. */
#include "tests/unit/ragent/control/control_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define REPLY_MAX (1u << 20)

struct control *control;
const char *control_path;
struct asked asked;

static struct operations operations;

/* The operations */

static const char *copied(char *room, size_t cap, const char *text)
{
	snprintf(room, cap, "%s", text ? text : "");
	return text ? room : NULL;
}
#define COPY(room, text) (text) = copied(room, sizeof(room), text)

static void note(
	const char *what, const struct operations *o, const struct control_input *in, struct control_request *r)
{
	ck_assert_ptr_eq(o, &operations);
	asked.calls++;
	asked.what = what;
	asked.request = r;
	asked.in = *in;
	COPY(asked.agent, asked.in.agent);
	COPY(asked.query_agent, asked.in.query.agent);
	COPY(asked.listener, asked.in.query.listener);
	COPY(asked.node, asked.in.node);
	COPY(asked.level, asked.in.level);
	copied(asked.server_name, sizeof asked.server_name, in->filter.server_name);
	asked.in.filter.server_name = asked.server_name;
	asked.in.filter.client_address.data = asked.in.net.bytes;
	asked.in.filter.family_id.data = asked.in.family_id;
	asked.in.filter.client_certificate.data = asked.in.client_certificate;
}

#define NOTED(name)                                                                                                    \
	void operations_##name(struct operations *o, const struct control_input *in, struct control_request *r)        \
	{                                                                                                              \
		note(#name, o, in, r);                                                                                 \
	}
NOTED(status)
NOTED(listeners)
NOTED(ready)
NOTED(connections)
NOTED(end)
NOTED(block)
NOTED(blocks)
NOTED(move)
NOTED(rest)
NOTED(agents)
NOTED(agent)
NOTED(drain)
NOTED(undrain)
NOTED(weight)
NOTED(counters)
NOTED(metrics)
NOTED(certificates)
NOTED(revoke)
NOTED(reload)
NOTED(log_level)
NOTED(mail)
NOTED(sessions)
NOTED(session_count)
NOTED(session)

/* Answers from within the call. */
void operations_rotate(struct operations *o, const struct control_input *in, struct control_request *r)
{
	note("rotate", o, in, NULL);
	request_answer(r, MHD_HTTP_OK, json_pack("{s:[s, s]}", "done", "a1", "a2"));
}

static void setup(const struct control_limits *limits)
{
	static char path[128];
	char error[256] = "";
	setup_worker();
	memset(&asked, 0, sizeof asked);
	snprintf(path, sizeof path, "%s/control", temp_dir());
	control_path = path;
	control = control_create(w, -1, path, &operations, limits, error, sizeof error);
	ck_assert_msg(control != NULL, "%s", error);
}

void setup_control(void)
{
	setup(NULL);
}

void setup_control_hurried(void)
{
	setup(&(const struct control_limits){ .client_ms = 60,
		.answer_ms = 60,
		.arrival_ms = 60,
		.local = 3,
		.remote = 3,
		.of_source = 3,
		.arrivals = 3 });
}

void setup_control_patient(void)
{
	setup(&(const struct control_limits){ .client_ms = 60,
		.answer_ms = WAIT_LIMIT_MS,
		.arrival_ms = 60,
		.local = 3,
		.remote = 3,
		.of_source = 3,
		.arrivals = 3 });
}

void setup_control_crowded(void)
{
	setup(&(const struct control_limits){ .client_ms = WAIT_LIMIT_MS,
		.answer_ms = WAIT_LIMIT_MS,
		.arrival_ms = WAIT_LIMIT_MS,
		.local = 3,
		.remote = 3,
		.of_source = 3,
		.arrivals = 3 });
}

int control_facts_run(const char *name, void (*setup_one)(void), const TTest *const *facts, size_t count)
{
	Suite *suite = suite_create(name);
	TCase *all = tcase_create(name);
	suite_add_tcase(suite, all);
	tcase_set_timeout(all, 60);
	tcase_add_checked_fixture(all, setup_one, teardown_control);
	for (size_t i = 0; i < count; i++)
		tcase_add_test(all, facts[i]);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	const int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed > 0;
}

void control_stop(void)
{
	control_destroy(control);
	control = NULL;
}

void teardown_control(void)
{
	control_stop();
	worker_stop(w);
	worker_run(w);
	teardown_worker();
}

/* The client */

int client_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	strcpy(address.sun_path, control_path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ck_assert_int_ge(fd, 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
		return fd;
	close(fd);
	return -1;
}

int client_connect_to(const struct sockaddr_storage *address)
{
	const struct sockaddr *a = (const struct sockaddr *)address;
	int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert(connect(fd, a, address_len(a)) == 0 || errno == EINPROGRESS);
	return fd;
}

void client_send(int fd, const char *text)
{
	write_all(fd, text, strlen(text));
}

void client_request(int fd, const char *method, const char *path, const char *body)
{
	char text[4096];
	int n = body ? snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s", method,
			       path, strlen(body), body)
		     : snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", method, path);
	ck_assert_int_lt(n, (int)sizeof text);
	client_send(fd, text);
}

static void copy_header(const char *head, const char *name, char *out, size_t cap)
{
	const char *at = strcasestr(head, name);
	out[0] = '\0';
	if (at)
		snprintf(out, cap, "%.*s", (int)strcspn(at + strlen(name), "\r"), at + strlen(name));
}

struct reply client_read(int fd)
{
	static char text[REPLY_MAX];
	struct reply r = { 0 };
	char length[32];
	size_t got = 0, wanted = SIZE_MAX;
	const uint64_t limit = now_ms() + WAIT_LIMIT_MS;
	while (got < wanted) {
		int end = 0;
		turn();
		const ssize_t n = read_some(fd, text + got, sizeof text - 1 - got, &end);
		ck_assert_msg(n >= 0 && !end, "the connection ended before an answer: %.*s", (int)got, text);
		ck_assert_msg(now_ms() < limit, "no answer: %.*s", (int)got, text);
		got += (size_t)n;
		text[got] = '\0';
		const char *head_end = strstr(text, "\r\n\r\n");
		if (!head_end)
			continue;
		copy_header(text, "\r\nContent-Length: ", length, sizeof length);
		wanted = (size_t)(head_end - text) + 4 + strtoul(length, NULL, 10);
	}
	const char *body = strstr(text, "\r\n\r\n") + 4;
	ck_assert_int_eq(sscanf(text, "HTTP/1.1 %u ", &r.status), 1);
	copy_header(text, "\r\nAllow: ", r.allow, sizeof r.allow);
	copy_header(text, "\r\nContent-Type: ", r.type, sizeof r.type);
	r.body = json_loads(body, 0, NULL);
	const char *error = json_string_value(json_object_get(r.body, "error"));
	snprintf(r.error, sizeof r.error, "%s", error ? error : "");
	return r;
}

void reply_free(struct reply *r)
{
	json_decref(r->body);
}

int client_ask(const char *method, const char *path, const char *body)
{
	const unsigned calls = asked.calls;
	const int fd = client_connect();
	ck_assert_int_ge(fd, 0);
	client_request(fd, method, path, body);
	wait_until(asked.calls > calls);
	return fd;
}

struct reply client_get(const char *method, const char *path, const char *body)
{
	const int fd = client_connect();
	ck_assert_int_ge(fd, 0);
	client_request(fd, method, path, body);
	struct reply r = client_read(fd);
	close(fd);
	return r;
}
