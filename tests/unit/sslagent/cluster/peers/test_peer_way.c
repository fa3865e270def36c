/* test_peer_way.c: facts of the way to another agent: its UNIX socket if that exists, else TCP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "sslagent/cluster/peers/peer_way.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

struct host {
	char folder[32], own_path[64], path[64];
	struct conf_agent self, peer;
	struct peer_way way;
};

static void host_make(struct host *h)
{
	*h = (struct host){ .folder = "/tmp/cssl-way-XXXXXX" };
	ck_assert_ptr_nonnull(mkdtemp(h->folder));
	snprintf(h->own_path, sizeof(h->own_path), "%s/a", h->folder);
	snprintf(h->path, sizeof(h->path), "%s/b", h->folder);
	h->self.peer_socket = h->own_path;
	h->peer.peer_socket = h->path;
	h->peer.peer.ss_family = AF_INET;
}

/* As an agent does that starts: under another name first, so that the file is another one even if its inode is not. */
static void host_bind(struct host *h)
{
	char fresh[80];
	FILE *file;

	snprintf(fresh, sizeof(fresh), "%s.new", h->path);
	file = fopen(fresh, "w");
	ck_assert_ptr_nonnull(file);
	fclose(file);
	ck_assert_int_eq(rename(fresh, h->path), 0);
}

static void host_remove(struct host *h)
{
	unlink(h->path);
	ck_assert_int_eq(rmdir(h->folder), 0);
}

static int family_now(struct host *h)
{
	struct sockaddr_storage to;

	peer_way_address(&h->way, &h->self, &h->peer, &to);
	if (to.ss_family == AF_UNIX)
		ck_assert_str_eq(((struct sockaddr_un *)&to)->sun_path, h->path);
	return to.ss_family;
}

START_TEST(a_socket_that_stands_is_the_way)
{
	struct host h;

	host_make(&h);
	host_bind(&h);
	ck_assert_int_eq(family_now(&h), AF_UNIX);
	ck_assert_int_eq(peer_way_is_longer(&h.way, &h.self, &h.peer), 0);
	host_remove(&h);
}
END_TEST

START_TEST(without_one_tcp_is)
{
	struct host h;

	host_make(&h);
	ck_assert_int_eq(family_now(&h), AF_INET);
	ck_assert_int_eq(peer_way_is_longer(&h.way, &h.self, &h.peer), 0);
	host_remove(&h);
}
END_TEST

START_TEST(the_same_path_as_ones_own_is_another_hosts)
{
	struct host h;

	host_make(&h);
	host_bind(&h);
	h.self.peer_socket = h.path;
	ck_assert_int_eq(family_now(&h), AF_INET);
	ck_assert_int_eq(peer_way_is_longer(&h.way, &h.self, &h.peer), 0);
	host_remove(&h);
}
END_TEST

START_TEST(where_nobody_of_that_name_answers_tcp_is_tried_and_stays)
{
	struct host h;

	host_make(&h);
	host_bind(&h);
	ck_assert_int_eq(family_now(&h), AF_UNIX);
	for (int answers = 0; answers < 3; answers++) {
		ck_assert_int_eq(peer_way_failed(&h.way, UV_ECONNREFUSED), 1);
		ck_assert_int_eq(family_now(&h), AF_INET);
		if (!peer_way_is_longer(&h.way, &h.self, &h.peer))
			break;
		ck_assert_int_eq(answers, 0); /* it may not have listened yet, when it was tried first */
		ck_assert_int_eq(peer_way_failed(&h.way, UV_EAGAIN), 0);
		ck_assert_int_eq(family_now(&h), AF_UNIX);
	}
	ck_assert_int_eq(family_now(&h), AF_INET);
	host_remove(&h);
}
END_TEST

START_TEST(one_that_listens_when_tcp_answers_is_reached_by_its_socket)
{
	struct host h;

	host_make(&h);
	host_bind(&h);
	ck_assert_int_eq(family_now(&h), AF_UNIX);
	ck_assert_int_eq(peer_way_failed(&h.way, UV_ECONNREFUSED), 1); /* bound, and it does not listen yet */
	ck_assert_int_eq(family_now(&h), AF_INET);
	ck_assert_int_eq(peer_way_is_longer(&h.way, &h.self, &h.peer), 1);
	ck_assert_int_eq(peer_way_failed(&h.way, UV_EAGAIN), 0);
	ck_assert_int_eq(family_now(&h), AF_UNIX);
	host_remove(&h);
}
END_TEST

START_TEST(a_socket_bound_anew_is_tried_before_tcp)
{
	struct host h;

	host_make(&h);
	host_bind(&h);
	ck_assert_int_eq(family_now(&h), AF_UNIX);
	ck_assert_int_eq(peer_way_failed(&h.way, UV_ECONNREFUSED), 1);
	host_bind(&h);
	ck_assert_int_eq(family_now(&h), AF_UNIX);
	host_remove(&h);
}
END_TEST

START_TEST(a_socket_bound_while_tcp_was_asked_is_the_shorter_way)
{
	struct host h;

	host_make(&h);
	ck_assert_int_eq(family_now(&h), AF_INET);
	host_bind(&h);
	ck_assert_int_eq(peer_way_is_longer(&h.way, &h.self, &h.peer), 1);
	ck_assert_int_eq(peer_way_failed(&h.way, UV_EAGAIN), 0);
	ck_assert_int_eq(family_now(&h), AF_UNIX);
	host_remove(&h);
}
END_TEST

START_TEST(one_that_is_slow_to_answer_is_waited_for)
{
	struct host h;

	host_make(&h);
	host_bind(&h);
	ck_assert_int_eq(family_now(&h), AF_UNIX);
	ck_assert_int_eq(peer_way_failed(&h.way, UV_ETIMEDOUT), 0);
	ck_assert_int_eq(family_now(&h), AF_UNIX);
	host_remove(&h);
}
END_TEST

static const int ends[] = { 0, UV_ECONNRESET, UV_EAGAIN }; /* 0: it closed before its name was proved */
#define ENDS (sizeof ends / sizeof ends[0])

START_TEST(an_opening_that_ends_does_not_prove_that_nobody_is_there)
{
	struct host h;

	host_make(&h);
	host_bind(&h);
	for (size_t i = 0; i < ENDS; i++) {
		ck_assert_int_eq(family_now(&h), AF_UNIX);
		ck_assert_int_eq(peer_way_failed(&h.way, ends[i]), 0);
	}
	ck_assert_int_eq(family_now(&h), AF_UNIX);
	host_remove(&h);
}
END_TEST

START_TEST(where_all_openings_end_tcp_is_tried_too)
{
	struct host h;
	unsigned attempts = 1;

	host_make(&h);
	host_bind(&h);
	ck_assert_int_eq(family_now(&h), AF_UNIX);
	while (peer_way_failed(&h.way, 0) == 0 && attempts < 100) {
		ck_assert_int_eq(family_now(&h), AF_UNIX);
		attempts++;
	}
	ck_assert_uint_eq(attempts, 8);
	ck_assert_int_eq(family_now(&h), AF_INET);
	ck_assert_int_eq(peer_way_failed(&h.way, UV_ECONNREFUSED), 0);
	ck_assert_int_eq(family_now(&h), AF_UNIX);
	ck_assert_int_eq(peer_way_failed(&h.way, 0), 1);
	ck_assert_int_eq(family_now(&h), AF_INET);
	host_bind(&h);
	ck_assert_int_eq(family_now(&h), AF_UNIX);
	ck_assert_int_eq(peer_way_failed(&h.way, 0), 0); /* another file, without doubts */
	host_remove(&h);
}
END_TEST

START_TEST(one_that_has_answered_there_is_only_busy)
{
	struct host h;

	host_make(&h);
	host_bind(&h);
	ck_assert_int_eq(family_now(&h), AF_UNIX);
	peer_way_proved(&h.way);
	for (size_t i = 0; i < 100; i++) {
		ck_assert_int_eq(family_now(&h), AF_UNIX);
		ck_assert_int_eq(peer_way_failed(&h.way, ends[i % ENDS]), 0);
	}
	ck_assert_int_eq(peer_way_failed(&h.way, UV_ECONNREFUSED), 1); /* it is gone */
	ck_assert_int_eq(family_now(&h), AF_INET);
	host_remove(&h);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_socket_that_stands_is_the_way);
	tcase_add_test(tcase, without_one_tcp_is);
	tcase_add_test(tcase, the_same_path_as_ones_own_is_another_hosts);
	tcase_add_test(tcase, where_nobody_of_that_name_answers_tcp_is_tried_and_stays);
	tcase_add_test(tcase, one_that_listens_when_tcp_answers_is_reached_by_its_socket);
	tcase_add_test(tcase, a_socket_bound_anew_is_tried_before_tcp);
	tcase_add_test(tcase, a_socket_bound_while_tcp_was_asked_is_the_shorter_way);
	tcase_add_test(tcase, one_that_is_slow_to_answer_is_waited_for);
	tcase_add_test(tcase, an_opening_that_ends_does_not_prove_that_nobody_is_there);
	tcase_add_test(tcase, where_all_openings_end_tcp_is_tried_too);
	tcase_add_test(tcase, one_that_has_answered_there_is_only_busy);
}

UNIT(peer_way)
{
	return run_suite("peer_way", add);
}
