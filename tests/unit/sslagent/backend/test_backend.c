/* test_backend.c: facts of what is known of backends that cannot be reached, and why. */
#include <string.h>
#include <sys/resource.h>

#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

static struct backend_state *state_of(const char *name)
{
	return &a1.backend_states[conf_backend_find(a1.worker.conf, name) - a1.worker.conf->backends];
}

/* Descriptors are what this process lacks, not a backend: over TCP, over a UNIX socket, of mail. */
START_TEST(a_process_without_descriptors_does_not_blame_the_backend)
{
	static const struct {
		const char *listener, *backend, *told;
	} rows[] = { { "http", "main", "HTTP/1.1 502 Bad Gateway\r\n" },
		{ "unreachable", "nowhere", "HTTP/1.1 502 Bad Gateway\r\n" },
		{ "smtp", "main", "421 4.3.2 Service is overloaded" } };
	struct rlimit before, files;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	files = before;
	files.rlim_cur = 3;
	if (_i < 2)
		keep(rows[_i].listener, &a1, TLS13);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	if (_i == 2) /* the server speaks first */
		hello(rows[_i].listener, &a1, CSSL__LINK_OPEN__DISPOSITION__KEEP, TLS13);
	else
		say_text(GET);
	expect_end(END_OVERLOADED, CARRIER_ORDERLY);
	expect_close_notify();
	ck_assert_int_eq(strncmp((char *)got, rows[_i].told, strlen(rows[_i].told)), 0);
	ck_assert_int_eq(state_of(rows[_i].backend)->failure, 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0); /* a search for leaks needs some */
}
END_TEST

/* A worker learns it from its own clients; all of them know it. */
START_TEST(what_no_backend_answered_is_known_for_a_while)
{
	char text[BACKENDS_TEXT_MAX];
	const uint64_t now = worker_now_ms(w);

	ck_assert_int_eq(backends_failing(a1.backend_states, a1.worker.conf, now, text), 0);
	ck_assert_str_eq(text, "");
	keep("unreachable", &a1, TLS13);
	say_text(GET);
	expect_end(END_BACKEND_UNREACHABLE, CARRIER_ORDERLY);
	ck_assert_int_eq(state_of("nowhere")->failure, UV_ENOENT);
	ck_assert_int_eq(backends_failing(a1.backend_states, a1.worker.conf, worker_now_ms(w), text), 0);
	ck_assert_str_eq(text, "nowhere at unix:/nonexistent/backend: no such file or directory");
	for (size_t i = 0; i < a1.worker.conf->backend_count; i++) {
		a1.backend_states[i].failure = UV_ETIMEDOUT;
		a1.backend_states[i].failed_ms = now;
	}
	state_of("main")->failed_ms = now + 1; /* by a worker that looked at the clock later */
	ck_assert_int_eq(backends_failing(a1.backend_states, a1.worker.conf, now, text), 1);
	ck_assert_ptr_nonnull(strstr(text, "main at "));
	const uint64_t over = now + BACKENDS_FAIL_FOR_MS;
	ck_assert_int_eq(backends_failing(a1.backend_states, a1.worker.conf, over - 1, text), 1);
	ck_assert_ptr_nonnull(strstr(text, "nowhere at unix:/nonexistent/backend: connection timed out"));
	ck_assert_int_eq(backends_failing(a1.backend_states, a1.worker.conf, over, text), 1);
	ck_assert_int_eq(strncmp(text, "main at ", 8), 0); /* nobody has tried the others for long */
	ck_assert_ptr_null(strstr(text, "nowhere"));
	ck_assert_int_eq(backends_failing(a1.backend_states, a1.worker.conf, over + 1, text), 0);
	ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(a_backend_that_answers_again_is_known_at_once)
{
	state_of("main")->failure = UV_ECONNREFUSED;
	keep("http", &a1, TLS13);
	say_text(GET);
	backend_accept();
	backend_hear(GET);
	ck_assert_int_eq(state_of("main")->failure, 0);
}
END_TEST

UNIT(backend)
{
	const struct connection_fact facts[] = {
		{ a_process_without_descriptors_does_not_blame_the_backend, 3 },
		{ what_no_backend_answered_is_known_for_a_while, 0 },
		{ a_backend_that_answers_again_is_known_at_once, 0 },
	};

	return connection_suite_run("backend", facts, FACTS_LEN(facts));
}
