/* test_capture.c: facts of connections that wanted to go elsewhere. Those that the kernel does lead here are in
 * tests/scenario/test_smtpproxy_captured.py and test_captured.py.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "net/socket/address.h"
#include "net/socket/capture.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const char *const loopback[] = { "127.0.0.1:0", "[::1]:0" };

struct direct {
	int listening, client, accepted;
	struct sockaddr_storage at;
};

static void direct_open(struct direct *d, const char *text, enum capture how)
{
	socklen_t len = sizeof d->at;
	ck_assert_int_eq(address_parse(text, &d->at), 0);
	struct sockaddr *at = (struct sockaddr *)&d->at;
	d->listening = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(d->listening, at, address_len(at)), 0);
	ck_assert_int_eq(listen(d->listening, 1), 0);
	ck_assert_int_eq(getsockname(d->listening, at, &len), 0);
	ck_assert_int_eq(capture_prepare(d->listening, how), 0);
	d->client = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(d->client, at, address_len(at)), 0);
	d->accepted = accept(d->listening, NULL, NULL);
	ck_assert_int_ge(d->accepted, 0);
}

static void direct_close(struct direct *d)
{
	close(d->client);
	close(d->accepted);
	close(d->listening);
}

START_TEST(without_capture_the_destination_is_the_own_address)
{
	struct direct d;
	struct sockaddr_storage to;
	direct_open(&d, loopback[_i], CAPTURE_NONE);
	ck_assert_int_eq(capture_destination(d.accepted, CAPTURE_NONE, (struct sockaddr *)&d.at, &to), 0);
	ck_assert_mem_eq(&to, &d.at, address_len((struct sockaddr *)&d.at));
	ck_assert_int_eq(capture_is_transparent(d.accepted), 0);
	direct_close(&d);
}
END_TEST

START_TEST(what_comes_to_all_addresses_is_asked_for_the_one_it_came_to)
{
	const char *const all[] = { "0.0.0.0:0", "[::]:0" };
	struct direct d;
	struct sockaddr_storage to, any, came;
	socklen_t len = sizeof came;
	direct_open(&d, loopback[_i], CAPTURE_NONE);
	ck_assert_int_eq(address_parse(all[_i], &any), 0);
	ck_assert_int_eq(capture_destination(d.accepted, CAPTURE_NONE, (struct sockaddr *)&any, &to), 0);
	ck_assert_int_eq(getsockname(d.accepted, (struct sockaddr *)&came, &len), 0);
	ck_assert_mem_eq(&to, &came, len);
	direct_close(&d);
}
END_TEST

START_TEST(a_redirect_listener_knows_no_destination_of_who_came_to_it)
{
	struct direct d;
	struct sockaddr_storage to;
	direct_open(&d, loopback[_i], CAPTURE_REDIRECT);
	ck_assert_int_eq(
		capture_destination(d.accepted, CAPTURE_REDIRECT, (struct sockaddr *)&d.at, &to), CSSL_E_NOT_FOUND);
	direct_close(&d);
}
END_TEST

START_TEST(a_tproxy_listener_knows_no_destination_of_who_came_to_its_port)
{
	struct direct d;
	struct sockaddr_storage to, other;
	direct_open(&d, loopback[_i], CAPTURE_NONE);
	other = d.at;
	address_set_port((struct sockaddr *)&other, (uint16_t)(address_port((struct sockaddr *)&d.at) ^ 1));
	ck_assert_int_eq(
		capture_destination(d.accepted, CAPTURE_TPROXY, (struct sockaddr *)&d.at, &to), CSSL_E_NOT_FOUND);
	ck_assert_int_eq(capture_destination(d.accepted, CAPTURE_TPROXY, (struct sockaddr *)&other, &to), 0);
	ck_assert_mem_eq(&to, &d.at, address_len((struct sockaddr *)&d.at));
	direct_close(&d);
}
END_TEST

START_TEST(what_a_tproxy_listener_accepts_is_transparent_too)
{
	struct direct d;
	if (capture_try() < 0) {
		ck_assert_int_eq(capture_try(), -EPERM);
		return;
	}
	direct_open(&d, loopback[_i], CAPTURE_TPROXY);
	ck_assert_int_eq(capture_is_transparent(d.listening), 1);
	ck_assert_int_eq(capture_is_transparent(d.accepted), 1);
	ck_assert_int_eq(capture_prepare(d.listening, CAPTURE_REDIRECT), 0);
	ck_assert_int_eq(capture_is_transparent(d.listening), 0);
	direct_close(&d);
}
END_TEST

/* A process that inherits the socket may not have that right itself. */
START_TEST(a_socket_that_is_prepared_already_needs_no_right)
{
	struct direct d;
	direct_open(&d, loopback[_i], CAPTURE_NONE);
	if (geteuid() == 0 && capture_prepare(d.listening, CAPTURE_TPROXY) == 0) {
		ck_assert_int_eq(seteuid(65534), 0);
		ck_assert_int_eq(capture_try(), -EPERM);
		ck_assert_int_eq(capture_prepare(d.listening, CAPTURE_TPROXY), 0);
		ck_assert_int_eq(seteuid(0), 0);
	}
	direct_close(&d);
}
END_TEST

START_TEST(a_header_tells_both_addresses)
{
	struct proxy_header h = { .version = 2,
		.command = PROXY_PROXIED,
		.family = PROXY_TCP4,
		.source = { 192, 0, 2, 1 },
		.destination = { 203, 0, 113, 25 },
		.source_port = 1000,
		.destination_port = 25,
		.unique_id = (const uint8_t *)"id",
		.unique_id_len = 2 };
	struct sockaddr_storage from, to;
	char text[ADDRESS_TEXT_MAX];
	ck_assert_int_eq(capture_of_header(&h, &from, &to), 0);
	ck_assert_str_eq(address_format((struct sockaddr *)&from, text), "192.0.2.1:1000");
	ck_assert_str_eq(address_format((struct sockaddr *)&to, text), "203.0.113.25:25");
	h.family = PROXY_TCP6;
	ck_assert_int_eq(capture_of_header(&h, &from, &to), 0);
	ck_assert_int_eq(to.ss_family, AF_INET6);
	h.family = PROXY_UNSPEC;
	ck_assert_int_eq(capture_of_header(&h, &from, &to), CSSL_E_NOT_FOUND);
}
END_TEST

UNIT(capture)
{
	const TTest *facts[] = { a_header_tells_both_addresses };
	TCase *t = tcase_create("capture");

	tcase_add_loop_test(t, without_capture_the_destination_is_the_own_address, 0, SUITE_LEN(loopback));
	tcase_add_loop_test(t, what_comes_to_all_addresses_is_asked_for_the_one_it_came_to, 0, SUITE_LEN(loopback));
	tcase_add_loop_test(t, a_redirect_listener_knows_no_destination_of_who_came_to_it, 0, SUITE_LEN(loopback));
	tcase_add_loop_test(t, a_tproxy_listener_knows_no_destination_of_who_came_to_its_port, 0, SUITE_LEN(loopback));
	tcase_add_loop_test(t, what_a_tproxy_listener_accepts_is_transparent_too, 0, SUITE_LEN(loopback));
	tcase_add_loop_test(t, a_socket_that_is_prepared_already_needs_no_right, 0, SUITE_LEN(loopback));
	return suite_run_case("capture", t, facts, SUITE_LEN(facts));
}
