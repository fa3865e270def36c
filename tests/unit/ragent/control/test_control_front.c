/* test_control_front.c: facts of the control API over TCP: tokens, roles, PROXY headers, guessing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "proto/proxy_header.h"
#include "ragent/control/access/control_guard.h"
#include "tests/unit/ragent/control/control_fixture.h"
#include "tests/unit/unit.h"

#define READER   "reader"
#define OPERATOR "operator"

static struct sockaddr_storage front;

static void write_tokens(const char *path)
{
	static const struct {
		const char *role, *token;
	} rows[] = { { "read", READER }, { "operate", OPERATOR } };
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	for (unsigned i = 0; i < 2; i++) {
		uint8_t hash[32];
		char hex[65];
		crypto_generichash(hash, sizeof hash, (const uint8_t *)rows[i].token, strlen(rows[i].token), NULL, 0);
		fprintf(f, "%s-token %s %s\n", rows[i].role, rows[i].role,
			sodium_bin2hex(hex, sizeof hex, hash, sizeof hash));
	}
	fclose(f);
}

static void setup_front(enum conf_switch proxied)
{
	char path[128], error[256];
	setup_control();
	snprintf(path, sizeof path, "%s/tokens", temp_dir());
	write_tokens(path);
	close(socket_listen(OVER_TCP4, &front)); /* a port that was free just now */
	const struct control_front f = { (const struct sockaddr *)&front, proxied, path };
	ck_assert_msg(control_serve_address(control, &f, error, sizeof error) == 0, "%s", error);
}

static void setup_plain(void)
{
	setup_front(CONF_OFF);
}

static void setup_proxied(void)
{
	setup_front(CONF_ON);
}

static void ask_with(int fd, const char *method, const char *path, const char *token)
{
	char text[512];
	snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n%s%s%s\r\n", method, path,
		token ? "Authorization: Bearer " : "", token ? token : "", token ? "\r\n" : "");
	client_send(fd, text);
}

static unsigned status_of(const char *method, const char *path, const char *token)
{
	int fd = client_connect_to(&front);
	ask_with(fd, method, path, token);
	struct reply r = client_read(fd);
	const unsigned status = r.status;
	reply_free(&r);
	close(fd);
	return status;
}

START_TEST(without_a_token_nothing_is_answered)
{
	ck_assert_uint_eq(status_of("GET", "/v1", NULL), 401);
	ck_assert_uint_eq(status_of("GET", "/v1/nothing", NULL), 401);
	ck_assert_uint_eq(status_of("POST", "/v1/keys/rotate", NULL), 401);
	ck_assert_uint_eq(asked.calls, 0);
}
END_TEST

START_TEST(the_page_is_for_all_but_not_to_be_written)
{
	ck_assert_uint_eq(status_of("GET", "/", NULL), 200);
	ck_assert_uint_eq(status_of("POST", "/", NULL), 401);
}
END_TEST

START_TEST(an_unknown_token_is_as_good_as_none)
{
	ck_assert_uint_eq(status_of("GET", "/v1", "guess"), 401);
	ck_assert_uint_eq(asked.calls, 0);
}
END_TEST

START_TEST(a_reader_reads_and_does_not_operate)
{
	ck_assert_uint_eq(status_of("GET", "/v1", READER), 200);
	ck_assert_uint_eq(status_of("POST", "/v1/keys/rotate", READER), 403);
	ck_assert_uint_eq(asked.calls, 0);
}
END_TEST

START_TEST(an_operator_reads_and_operates)
{
	ck_assert_uint_eq(status_of("GET", "/v1", OPERATOR), 200);
	ck_assert_uint_eq(status_of("POST", "/v1/keys/rotate", OPERATOR), 200);
	ck_assert_str_eq(asked.what, "rotate");
}
END_TEST

START_TEST(the_socket_needs_no_token)
{
	struct reply r = client_get("POST", "/v1/keys/rotate", NULL);
	ck_assert_uint_eq(r.status, 200);
	reply_free(&r);
}
END_TEST

START_TEST(a_client_that_guesses_has_to_wait_and_one_that_knows_has_not)
{
	for (unsigned i = 0; i < GUARD_FAILURES_MAX; i++)
		ck_assert_uint_eq(status_of("GET", "/v1", "guess"), 401);
	ck_assert_uint_eq(status_of("GET", "/v1", "guess"), 429);
	ck_assert_uint_eq(status_of("GET", "/v1", OPERATOR), 200);
	ck_assert_uint_eq(status_of("GET", "/v1", NULL), 429);
}
END_TEST

START_TEST(asking_without_a_token_is_no_guess)
{
	for (unsigned i = 0; i < 2 * GUARD_FAILURES_MAX; i++)
		ck_assert_uint_eq(status_of("GET", "/v1", NULL), 401);
	ck_assert_uint_eq(status_of("GET", "/v1", READER), 200);
}
END_TEST

START_TEST(tokens_are_read_again_and_bad_ones_change_nothing)
{
	char path[128], error[256];
	snprintf(path, sizeof path, "%s/tokens", temp_dir());
	FILE *f = fopen(path, "w");
	fputs("nonsense\n", f);
	fclose(f);
	ck_assert_int_lt(control_reload_tokens(control, path, error, sizeof error), 0);
	ck_assert_uint_eq(status_of("GET", "/v1", READER), 200);
	f = fopen(path, "w");
	fclose(f);
	ck_assert_int_eq(control_reload_tokens(control, path, error, sizeof error), 0);
	ck_assert_uint_eq(status_of("GET", "/v1", READER), 401);
}
END_TEST

static int connect_as(uint8_t last_byte)
{
	struct proxy_header h = { .version = 2,
		.command = PROXY_PROXIED,
		.family = PROXY_TCP4,
		.source = { 192, 0, 2, last_byte },
		.destination = { 192, 0, 2, 250 } };
	uint8_t bytes[64];
	const ptrdiff_t len = proxy_header_write(&h, bytes, sizeof bytes);
	int fd = client_connect_to(&front);
	ck_assert_int_gt(len, 0);
	for (ptrdiff_t i = 0; i < len; i++) { /* in pieces: nothing spins, nothing is lost */
		write_all(fd, bytes + i, 1);
		turn();
	}
	return fd;
}

static unsigned status_as(uint8_t last_byte, const char *token)
{
	int fd = connect_as(last_byte);
	ask_with(fd, "GET", "/v1", token);
	struct reply r = client_read(fd);
	const unsigned status = r.status;
	reply_free(&r);
	close(fd);
	return status;
}

START_TEST(behind_a_proxy_header_each_client_has_guesses_of_its_own)
{
	for (unsigned i = 0; i < GUARD_FAILURES_MAX; i++)
		ck_assert_uint_eq(status_as(1, "guess"), 401);
	ck_assert_uint_eq(status_as(1, "guess"), 429);
	ck_assert_uint_eq(status_as(1, READER), 200);
	ck_assert_uint_eq(status_as(2, READER), 200);
}
END_TEST

#define OF_SOURCE 16 /* the default */

static unsigned ended(const int *fds, unsigned count)
{
	unsigned over = 0;
	char byte;
	for (unsigned i = 0; i < count; i++) {
		int end = 0;
		read_some(fds[i], &byte, 1, &end);
		over += end;
	}
	return over;
}

START_TEST(a_client_address_has_its_share_of_places_and_uses_it_as_it_likes)
{
	int silent[2 * OF_SOURCE];
	for (unsigned i = 0; i < 2 * OF_SOURCE; i++)
		silent[i] = connect_as(1);
	wait_until(ended(silent, 2 * OF_SOURCE) == OF_SOURCE);
	ck_assert_uint_eq(status_as(2, READER), 200);
	ck_assert_uint_eq(ended(silent, 2 * OF_SOURCE), OF_SOURCE);
	ck_assert_uint_eq(status_as(1, READER), 200);
	for (unsigned i = 0; i < 2 * OF_SOURCE; i++)
		close(silent[i]);
}
END_TEST

START_TEST(a_client_without_a_header_gives_way_and_ends_soon)
{
	int silent[3 * 64], end = 0;
	char byte;
	for (unsigned i = 0; i < 3 * 64; i++) {
		silent[i] = client_connect_to(&front);
		turn();
	}
	ck_assert_uint_eq(status_as(2, READER), 200);
	while (!end) {
		turn();
		ck_assert_int_le(read_some(silent[3 * 64 - 1], &byte, 1, &end), 0);
	}
	for (unsigned i = 0; i < 3 * 64; i++)
		close(silent[i]);
}
END_TEST

START_TEST(where_a_proxy_header_is_expected_anything_else_is_closed)
{
	int fd = client_connect_to(&front), end = 0;
	char byte;
	ask_with(fd, "GET", "/v1", READER);
	while (!end) {
		turn();
		ck_assert_int_le(read_some(fd, &byte, 1, &end), 0);
	}
	close(fd);
}
END_TEST

START_TEST(a_client_that_never_ends_the_header_is_closed_at_the_end)
{
	int fd = client_connect_to(&front);
	client_send(fd, "PROXY TCP4");
	turn();
	turn();
	control_stop();
	close(fd);
}
END_TEST

UNIT(control_front)
{
	const TTest *const plain[] = { without_a_token_nothing_is_answered, the_page_is_for_all_but_not_to_be_written,
		an_unknown_token_is_as_good_as_none, a_reader_reads_and_does_not_operate,
		an_operator_reads_and_operates, the_socket_needs_no_token,
		a_client_that_guesses_has_to_wait_and_one_that_knows_has_not, asking_without_a_token_is_no_guess,
		tokens_are_read_again_and_bad_ones_change_nothing };
	const TTest *const proxied[] = { behind_a_proxy_header_each_client_has_guesses_of_its_own,
		a_client_address_has_its_share_of_places_and_uses_it_as_it_likes,
		a_client_without_a_header_gives_way_and_ends_soon,
		where_a_proxy_header_is_expected_anything_else_is_closed,
		a_client_that_never_ends_the_header_is_closed_at_the_end };

	return control_facts_run("control access", setup_plain, plain, sizeof plain / sizeof plain[0]) |
	       control_facts_run("control access, proxied", setup_proxied, proxied, sizeof proxied / sizeof proxied[0]);
}
