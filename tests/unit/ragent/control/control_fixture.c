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

/* The provider */

static void note(const char *what, struct control_request *r)
{
	const unsigned calls = asked.calls + 1;
	memset(&asked, 0, sizeof asked);
	asked.calls = calls;
	asked.what = what;
	asked.request = r;
}

static void on_status(void *ctx, struct control_request *r)
{
	ck_assert_ptr_eq(ctx, &asked);
	note("status", r);
}

static void on_listeners(void *ctx, struct control_request *r)
{
	note("listeners", r);
}

static void on_counters(void *ctx, struct control_request *r)
{
	note("counters", r);
}

static void on_connections(void *ctx, const struct control_query *q, struct control_request *r)
{
	note("connections", r);
	asked.query.limit = q->limit;
	if (q->agent)
		asked.query.agent = strcpy(asked.agent, q->agent);
	if (q->listener)
		asked.query.listener = strcpy(asked.listener, q->listener);
	if (q->after) {
		asked.after = *q->after;
		asked.query.after = &asked.after;
	}
	if (q->client) {
		asked.client = *q->client;
		asked.query.client = &asked.client;
	}
}

static void on_connection(void *ctx, const struct connection_id *id, struct control_request *r)
{
	note("connection", r);
	asked.id = *id;
}

static void on_move(void *ctx, const struct connection_id *id, const char *agent, struct control_request *r)
{
	note("move", r);
	asked.id = *id;
	strcpy(asked.agent, agent);
}

static void on_rest(void *ctx, const struct connection_id *id, struct control_request *r)
{
	note("rest", r);
	asked.id = *id;
}

static void on_agents(void *ctx, const char *name, struct control_request *r)
{
	note(name ? "agent" : "agents", r);
	if (name)
		strcpy(asked.agent, name);
}

static void on_drain(void *ctx, const char *agent, uint32_t timeout_ms, struct control_request *r)
{
	note("drain", r);
	strcpy(asked.agent, agent);
	asked.timeout_ms = timeout_ms;
}

static void on_undrain(void *ctx, const char *agent, struct control_request *r)
{
	note("undrain", r);
	strcpy(asked.agent, agent);
}

static void on_weight(void *ctx, const char *agent, double weight, struct control_request *r)
{
	note("weight", r);
	strcpy(asked.agent, agent);
	asked.weight = weight;
}

static void note_sessions(const struct control_session_query *q)
{
	asked.sessions = *q;
	if (q->after)
		asked.sessions.after = memcpy(asked.session_after, q->after, SESSION_ID_LEN);
	if (q->server_name)
		asked.sessions.server_name = strcpy(asked.server_name, q->server_name);
}

static void on_sessions(void *ctx, const struct control_session_query *q, struct control_request *r)
{
	note("sessions", r);
	note_sessions(q);
}

static void on_session_count(void *ctx, const struct control_session_query *q, struct control_request *r)
{
	note("session count", r);
	note_sessions(q);
}

static void on_session(void *ctx, const uint8_t id[static SESSION_ID_LEN], struct control_request *r)
{
	note("session", r);
	memcpy(asked.session, id, SESSION_ID_LEN);
}

static void on_revoke(void *ctx, const struct control_revocation *what, struct control_request *r)
{
	note("revoke", r);
	asked.revocation = *what;
	if (what->server_name)
		asked.revocation.server_name = strcpy(asked.server_name, what->server_name);
	if (what->matching.server_name)
		asked.revocation.matching.server_name = strcpy(asked.server_name, what->matching.server_name);
	if (what->matching.client_certificate)
		asked.revocation.matching.client_certificate =
			memcpy(asked.client_certificate, what->matching.client_certificate, CONTROL_CERTIFICATE_LEN);
}

/* Answers from within the call. */
static void on_rotate(void *ctx, struct control_request *r)
{
	static const struct control_node_result done[] = { { "a1", NULL }, { "a2", NULL } };
	note("rotate", NULL);
	control_answer_nodes(r, done, 2);
}

static void on_log_level(void *ctx, const struct control_log_change *change, struct control_request *r)
{
	note("log level", r);
	snprintf(asked.agent, sizeof asked.agent, "%s", change->node ? change->node : "");
	snprintf(asked.level, sizeof asked.level, "%s", change->level ? change->level : "");
}

static void on_reload(void *ctx, struct control_request *r)
{
	note("reload", r);
}

static void on_mail(void *ctx, struct control_request *r)
{
	note("mail", r);
}

static void on_metrics(void *ctx, struct control_request *r)
{
	note("metrics", r);
}

static void on_certificates(void *ctx, struct control_request *r)
{
	note("certificates", r);
}

static void on_ready(void *ctx, struct control_request *r)
{
	note("ready", r);
}

static void on_blocks(void *ctx, struct control_request *r)
{
	note("blocks", r);
}

static void on_block(void *ctx, const struct address_net *net, uint32_t for_s, struct control_request *r)
{
	note("block", r);
	asked.client = *net;
	asked.for_s = for_s;
}

static void on_end(void *ctx, const struct control_query *q, struct control_request *r)
{
	on_connections(ctx, q, r);
	asked.what = "end";
	if (q->id) {
		asked.id = *q->id;
		asked.query.id = &asked.id;
	}
}

static const struct control_provider provider = {
	.status = on_status,
	.listeners = on_listeners,
	.counters = on_counters,
	.metrics = on_metrics,
	.certificates = on_certificates,
	.connections = on_connections,
	.connection = on_connection,
	.move = on_move,
	.rest = on_rest,
	.agents = on_agents,
	.drain = on_drain,
	.undrain = on_undrain,
	.weight = on_weight,
	.sessions = on_sessions,
	.session_count = on_session_count,
	.session = on_session,
	.revoke = on_revoke,
	.rotate = on_rotate,
	.reload = on_reload,
	.log_level = on_log_level,
	.mail = on_mail,
	.ready = on_ready,
	.blocks = on_blocks,
	.block = on_block,
	.end = on_end,
};

static void setup(const struct control_limits *limits)
{
	static char path[128];
	char error[256] = "";
	setup_worker();
	memset(&asked, 0, sizeof asked);
	snprintf(path, sizeof path, "%s/control", temp_dir());
	control_path = path;
	control = control_create(w, path, &provider, &asked, limits, error, sizeof error);
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
