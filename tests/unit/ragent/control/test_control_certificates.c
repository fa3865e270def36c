/* test_control_certificates.c: facts of client certificates at the control API: whose name counts, and where. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/proxy_header.h"
#include "tests/unit/ragent/control/control_fixture.h"
#include "tests/unit/unit.h"

static struct sockaddr_storage front;
static char tokens_path[128];

static void write_tokens(const char *text)
{
	snprintf(tokens_path, sizeof tokens_path, "%s/tokens", temp_dir());
	FILE *f = fopen(tokens_path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void setup_path(void)
{
	struct sockaddr_un *address = (struct sockaddr_un *)&front;
	char error[256];

	setup_control();
	write_tokens("watcher read cn=Alice Example\nnight-shift operate cn=bob\n");
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(address->sun_path, sizeof address->sun_path, "%s/front", temp_dir());
	const struct control_front f = { (const struct sockaddr *)&front, CONF_OFF, tokens_path };
	ck_assert_msg(control_serve_address(control, &f, error, sizeof error) == 0, "%s", error);
}

/* The facts about the client's certificate in the header. */
struct shown {
	const char *common_name;
	uint8_t flags;
	uint32_t verify;
};

static int connect_with(enum proxy_command command, const struct shown *s)
{
	const struct proxy_header h = { .version = 2,
		.command = command,
		.family = PROXY_TCP4,
		.source = { 192, 0, 2, 1 },
		.destination = { 192, 0, 2, 250 },
		.ssl_flags = PROXY_SSL | s->flags,
		.ssl_verify = s->verify,
		.ssl_cn = s->common_name,
		.ssl_cn_len = (uint16_t)strlen(s->common_name) };
	uint8_t bytes[256];
	const ptrdiff_t len = proxy_header_write(&h, bytes, sizeof bytes);
	int fd = client_connect_to(&front);

	ck_assert_int_gt(len, 0);
	write_all(fd, bytes, (size_t)len);
	return fd;
}

#define JSON "Content-Type: application/json\r\n"

static unsigned status_with(const char *method, const char *path, const struct shown *s, const char *headers)
{
	char text[512];
	int fd = connect_with(PROXY_PROXIED, s);

	snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: x:8443\r\nContent-Length: 0\r\n%s\r\n", method, path,
		headers);
	client_send(fd, text);
	struct reply r = client_read(fd);
	const unsigned status = r.status;
	reply_free(&r);
	close(fd);
	return status;
}

static unsigned status_of(const char *method, const char *path, const struct shown *s)
{
	return status_with(method, path, s, JSON);
}

#define VERIFIED (PROXY_CERT_CONN | PROXY_CERT_SESS)

static const struct {
	const char *method, *path;
	struct shown shown;
	unsigned status;
} visits[] = {
	{ "GET", "/v1", { "Alice Example", VERIFIED, 0 }, 200 },
	{ "GET", "/v1", { "Alice Example", PROXY_CERT_SESS, 0 }, 200 }, /* a resumption */
	{ "POST", "/v1/keys/rotate", { "Alice Example", VERIFIED, 0 }, 403 },
	{ "POST", "/v1/keys/rotate", { "bob", VERIFIED, 0 }, 200 },
	{ "GET", "/v1", { "bob", VERIFIED, 0 }, 200 },
	{ "GET", "/v1", { "bob", VERIFIED, 1 }, 401 },
	{ "GET", "/v1", { "bob", 0, 0 }, 401 },
	{ "GET", "/v1", { "Bob", VERIFIED, 0 }, 401 },
	{ "GET", "/v1", { "bobby", VERIFIED, 0 }, 401 },
	{ "GET", "/v1", { "Alice", VERIFIED, 0 }, 401 },
	{ "GET", "/v1", { "night-shift", VERIFIED, 0 }, 401 },
	{ "GET", "/v1", { "", VERIFIED, 0 }, 401 },
	{ "GET", "/v1",
		{ "a common name of more bytes than X.520 has room for, which is sixty-four of them", VERIFIED, 0 },
		401 },
};

START_TEST(only_a_verified_certificate_has_a_role_and_only_that_of_its_name)
{
	for (size_t i = 0; i < sizeof visits / sizeof visits[0]; i++)
		ck_assert_msg(status_of(visits[i].method, visits[i].path, &visits[i].shown) == visits[i].status,
			"visit %zu", i);
}
END_TEST

static const struct {
	const char *method, *headers;
	unsigned status;
} pages[] = {
	{ "POST", "", 403 },
	{ "POST", "Content-Type: text/plain\r\n", 403 },
	{ "POST", "Content-Type: application/x-www-form-urlencoded\r\n", 403 },
	{ "POST", "Content-Type: application/jsonp\r\n", 403 },
	{ "POST", "Content-Type: Application/JSON; charset=utf-8\r\n", 200 },
	{ "POST", JSON "Origin: https://evil.example\r\n", 403 },
	{ "POST", JSON "Origin: https://x\r\n", 403 },
	{ "POST", JSON "Origin: http://x:8443\r\n", 403 },
	{ "POST", JSON "Origin: null\r\n", 403 },
	{ "POST", JSON "Origin: https://x:8443\r\nSec-Fetch-Site: same-origin\r\n", 200 },
	{ "POST", JSON "Sec-Fetch-Site: cross-site\r\n", 403 },
	{ "POST", JSON "Sec-Fetch-Site: same-site\r\n", 403 },
	{ "POST", JSON "Sec-Fetch-Site: none\r\n", 200 },
	{ "GET", "Origin: https://evil.example\r\nSec-Fetch-Site: cross-site\r\n", 200 },
};

START_TEST(a_page_of_another_site_changes_nothing_by_its_visitors_certificate)
{
	for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
		const char *path = strcmp(pages[i].method, "GET") == 0 ? "/v1" : "/v1/keys/rotate";
		ck_assert_msg(status_with(pages[i].method, path, &(struct shown){ "bob", VERIFIED, 0 },
				      pages[i].headers) == pages[i].status,
			"page %zu", i);
	}
}
END_TEST

START_TEST(a_connection_without_a_client_is_not_the_owner_of_the_socket)
{
	int fd = connect_with(PROXY_LOCAL, &(struct shown){ "bob", VERIFIED, 0 }), end = 0;
	char byte;

	client_send(fd, "GET /v1 HTTP/1.1\r\nHost: x\r\n\r\n");
	while (!end) {
		turn();
		ck_assert_int_le(read_some(fd, &byte, 1, &end), 0);
	}
	close(fd);
}
END_TEST

START_TEST(a_name_that_lost_its_line_has_no_role_any_more)
{
	char error[256];

	ck_assert_uint_eq(status_of("GET", "/v1", &(struct shown){ "bob", VERIFIED, 0 }), 200);
	write_tokens("watcher read cn=Alice Example\n");
	ck_assert_int_eq(control_reload_tokens(control, tokens_path, error, sizeof error), 0);
	ck_assert_uint_eq(status_of("GET", "/v1", &(struct shown){ "bob", VERIFIED, 0 }), 401);
}
END_TEST

START_TEST(on_a_tcp_address_no_certificate_can_have_a_role)
{
	char error[512];

	setup_control();
	write_tokens("# certificates\nnight-shift operate cn=bob\n");
	close(socket_listen(OVER_TCP4, &front)); /* a port that was free just now */
	const struct control_front f = { (const struct sockaddr *)&front, CONF_ON, tokens_path };
	ck_assert_int_lt(control_serve_address(control, &f, error, sizeof error), 0);
	ck_assert_msg(strstr(error, "/tokens:2: ") != NULL && strstr(error, "unix:PATH") != NULL, "%s", error);
	write_tokens("");
	ck_assert_int_eq(control_serve_address(control, &f, error, sizeof error), 0);
	ck_assert_uint_eq(status_of("GET", "/v1", &(struct shown){ "bob", VERIFIED, 0 }), 401);
}
END_TEST

static void setup_nothing(void)
{
}

UNIT(control_certificates)
{
	const TTest *const path[] = { only_a_verified_certificate_has_a_role_and_only_that_of_its_name,
		a_page_of_another_site_changes_nothing_by_its_visitors_certificate,
		a_connection_without_a_client_is_not_the_owner_of_the_socket,
		a_name_that_lost_its_line_has_no_role_any_more };
	const TTest *const tcp[] = { on_a_tcp_address_no_certificate_can_have_a_role };

	return control_facts_run("control certificates", setup_path, path, sizeof path / sizeof path[0]) |
	       control_facts_run("control certificates, TCP", setup_nothing, tcp, sizeof tcp / sizeof tcp[0]);
}
