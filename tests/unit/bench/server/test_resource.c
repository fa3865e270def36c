/* test_resource.c: facts of paths and their answers, with the page and the identity lines. */
#include <arpa/inet.h>
#include <sodium.h>
#include <string.h>

#include "bench/server/agent_identity.h"
#include "bench/server/page.h"
#include "bench/server/resource.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct resources *all;
static struct http_request request;
static struct answer answer;

static void on_body(struct http_request *r, const uint8_t *data, size_t len)
{
	(void)r, (void)data, (void)len;
}

/* The answer to a request of this head. */
static unsigned ask(const char *head)
{
	size_t taken;
	struct request_body body = { .len = 3 };
	http_request_init(&request, on_body);
	ck_assert_int_eq(http_request_read(&request, (const uint8_t *)head, strlen(head), &taken), HTTP_READ_HEAD);
	const struct resource *r = resource_find(request.path, http_request_method(&request), &answer);
	if (r)
		resource_answer(all, r, &request, &body, &answer);
	return answer.status;
}

static void before(void)
{
	all = resources_create();
	ck_assert_ptr_nonnull(all);
}

START_TEST(sizes_are_numbers_with_k_or_m)
{
	ck_assert_uint_eq(ask("GET /64k HTTP/1.0\r\n\r\n"), 200);
	ck_assert_uint_eq(answer.length, 65536);
	ck_assert_uint_eq(ask("GET /20m HTTP/1.0\r\n\r\n"), 200);
	ck_assert_uint_eq(answer.length, 20u << 20);
	ck_assert_uint_eq(ask("GET /17179869184 HTTP/1.0\r\n\r\n"), 200);
	ck_assert_uint_eq(ask("GET /17179869185 HTTP/1.0\r\n\r\n"), 404);
	ck_assert_uint_eq(ask("GET /99999999999999999999999m HTTP/1.0\r\n\r\n"), 404);
	ck_assert_uint_eq(ask("GET /5kb HTTP/1.0\r\n\r\n"), 404);
	ck_assert_uint_eq(ask("GET /k HTTP/1.0\r\n\r\n"), 404);
	ck_assert_uint_eq(ask("GET /-5 HTTP/1.0\r\n\r\n"), 404);
}
END_TEST

START_TEST(a_range_does_not_count_for_head)
{
	ck_assert_uint_eq(ask("HEAD /5k HTTP/1.0\r\nRange: bytes=1-2\r\n\r\n"), 200);
	ck_assert_uint_eq(answer.length, 5120);
	ck_assert_uint_eq(ask("GET /5k HTTP/1.0\r\nRange: bytes=1-2\r\n\r\n"), 206);
	ck_assert_uint_eq(answer.length, 2);
	ck_assert_uint_eq(answer.offset, 1);
}
END_TEST

START_TEST(other_methods_get_those_that_there_are)
{
	ck_assert_uint_eq(ask("DELETE /count HTTP/1.0\r\n\r\n"), 405);
	ck_assert_ptr_nonnull(strstr(answer.fields, "Allow: POST, PUT, GET, HEAD\r\n"));
	ck_assert_uint_eq(ask("GET /sha256 HTTP/1.0\r\n\r\n"), 405);
	ck_assert_ptr_nonnull(strstr(answer.fields, "Allow: POST, PUT\r\n"));
	ck_assert_uint_eq(ask("POST /5 HTTP/1.0\r\nContent-Length: 0\r\n\r\n"), 405);
	ck_assert_ptr_nonnull(strstr(answer.fields, "Allow: GET, HEAD\r\n"));
}
END_TEST

START_TEST(only_a_digest_needs_the_body)
{
	const struct resource *digest = resource_find("/sha256", HTTP_POST, &answer);
	const struct resource *count = resource_find("/count", HTTP_POST, &answer);
	ck_assert_int_eq(resource_body_use(digest), BODY_DIGESTED);
	ck_assert_int_eq(resource_body_use(count), BODY_IGNORED);
}
END_TEST

START_TEST(a_digest_with_an_id_counts_as_an_execution)
{
	ck_assert_uint_eq(ask("POST /sha256 HTTP/1.0\r\nContent-Length: 3\r\n\r\n"), 200);
	ck_assert_uint_eq(ask("POST /sha256 HTTP/1.0\r\nX-Id: up-1\r\nContent-Length: 3\r\n\r\n"), 200);
	ck_assert_uint_eq(ask("POST /sha256 HTTP/1.0\r\nX-Id: up 1\r\nContent-Length: 3\r\n\r\n"), 400);
	ck_assert_uint_eq(ask("GET /count HTTP/1.0\r\n\r\n"), 200);
	ck_assert_ptr_nonnull(strstr(answer.text, "\"ids\":1,\"executions\":1,"));
}
END_TEST

START_TEST(times_of_slow_and_hold_are_bounded)
{
	ck_assert_uint_eq(ask("GET /slow?ms=500&bytes=1000 HTTP/1.0\r\n\r\n"), 200);
	ck_assert_uint_eq(answer.length, 1000);
	ck_assert_uint_eq(answer.bytes_per_s, 2001);
	ck_assert_uint_eq(ask("GET /slow?bytes=1000&ms=600001 HTTP/1.0\r\n\r\n"), 400);
	ck_assert_uint_eq(ask("GET /slow?bytes=134217729&ms=1 HTTP/1.0\r\n\r\n"), 400);
	ck_assert_uint_eq(ask("GET /slow?xbytes=1&bytes=2&ms=1 HTTP/1.0\r\n\r\n"), 200);
	ck_assert_uint_eq(answer.length, 2);
	ck_assert_uint_eq(ask("GET /hold?ms=7 HTTP/1.0\r\n\r\n"), 200);
	ck_assert_uint_eq(answer.delay_ms, 7);
	ck_assert_uint_eq(ask("GET /hold HTTP/1.0\r\n\r\n"), 200);
	ck_assert_uint_eq(answer.delay_ms, ANSWER_NEVER);
	ck_assert_uint_eq(ask("GET /hold?ms=600001 HTTP/1.0\r\n\r\n"), 400);
}
END_TEST

START_TEST(a_plain_answer_has_no_etag_and_no_ranges)
{
	ck_assert_uint_eq(ask("GET /slow?ms=500&bytes=1000 HTTP/1.0\r\nRange: bytes=1-2\r\n\r\n"), 206);
	ck_assert_ptr_nonnull(strstr(answer.fields, "ETag: "));
	ck_assert_uint_eq(ask("GET /slow?ms=500&bytes=1000&plain=1 HTTP/1.0\r\nRange: bytes=1-2\r\n\r\n"), 200);
	ck_assert_uint_eq(answer.fields_len, 0);
	ck_assert_uint_eq(answer.length, 1000);
	ck_assert_uint_eq(answer.bytes_per_s, 2001);
	ck_assert_uint_eq(ask("GET /slow?ms=500&bytes=1000&plain=x HTTP/1.0\r\n\r\n"), 400);
}
END_TEST

START_TEST(an_answer_after_another_has_nothing_of_it)
{
	ask("GET /slow?ms=500&bytes=1000 HTTP/1.0\r\n\r\n");
	ask("GET /hold?ms=7 HTTP/1.0\r\n\r\n");
	ck_assert_uint_eq(answer.bytes_per_s, 0);
	ask("GET /5 HTTP/1.0\r\n\r\n");
	ck_assert_uint_eq(answer.delay_ms, 0);
}
END_TEST

START_TEST(the_page_fits_its_buffer_and_names_every_part)
{
	char page[PAGE_MAX], part[PAGE_PART_MAX], name[32];
	size_t len = page_write(page), part_len;
	ck_assert_uint_lt(len, PAGE_MAX - 1);
	for (unsigned i = 0; i < PAGE_PARTS; i++) {
		const char *suffix = i < 10 ? "css" : i < 20 ? "js" : "svg";
		snprintf(name, sizeof(name), "/page/%u.%s", i, suffix);
		ck_assert_ptr_nonnull(memmem(page, len, name, strlen(name)));
		ck_assert_ptr_nonnull(page_part(name + strlen("/page/"), part, &part_len));
		ck_assert_uint_lt(part_len, PAGE_PART_MAX);
	}
	ck_assert_ptr_null(page_part("50.svg", part, &part_len));
	ck_assert_ptr_null(page_part("-1.css", part, &part_len));
	ck_assert_ptr_null(page_part("", part, &part_len));
}
END_TEST

static const char *identity_of(struct agent_identity *id, const struct proxy_header *h)
{
	id->len = 0;
	agent_identity_add_proxy(id, h);
	id->lines[id->len] = 0;
	return id->lines;
}

START_TEST(identity_lines_hold_no_line_ends_of_the_peer)
{
	struct agent_identity id;
	struct proxy_header h = { .command = PROXY_PROXIED, .authority = "a\r\nb\x80", .authority_len = 5 };
	ck_assert_str_eq(identity_of(&id, &h), "X-CSSL-SNI: a??b?\r\n");
}
END_TEST

START_TEST(an_identity_line_that_does_not_fit_is_left_out_whole)
{
	static char name[sizeof(((struct agent_identity *)0)->lines)];
	struct agent_identity id;
	struct proxy_header h = { .command = PROXY_PROXIED,
		.authority = name,
		.authority_len = sizeof(name) - 1,
		.alpn = "h2",
		.alpn_len = 2 };
	memset(name, 'x', sizeof(name));
	ck_assert_str_eq(identity_of(&id, &h), "X-CSSL-ALPN: h2\r\n");
}
END_TEST

START_TEST(agents_are_known_by_address_without_port)
{
	struct agent_map map = { 0 };
	struct agent_identity id;
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = 1234 };
	ck_assert_int_eq(agent_map_add(&map, "a1=127.0.1.1"), 0);
	ck_assert_int_ne(agent_map_add(&map, "a1"), 0);
	ck_assert_int_ne(agent_map_add(&map, "=127.0.1.1"), 0);
	ck_assert_int_ne(agent_map_add(&map, "a b=127.0.1.1"), 0);
	ck_assert_int_ne(agent_map_add(&map, "a1=somewhere"), 0);
	peer.sin_addr.s_addr = htonl(0x7f000101);
	agent_identity_from_socket(&id, &map, (struct sockaddr *)&peer);
	ck_assert_uint_eq(id.len, strlen("X-CSSL-Agent: a1\r\n"));
	peer.sin_addr.s_addr = htonl(0x7f000102);
	agent_identity_from_socket(&id, &map, (struct sockaddr *)&peer);
	ck_assert_uint_eq(id.len, 0);
}
END_TEST

UNIT(resource)
{
	const TTest *facts[] = {
		sizes_are_numbers_with_k_or_m,
		a_range_does_not_count_for_head,
		other_methods_get_those_that_there_are,
		only_a_digest_needs_the_body,
		a_digest_with_an_id_counts_as_an_execution,
		times_of_slow_and_hold_are_bounded,
		a_plain_answer_has_no_etag_and_no_ranges,
		an_answer_after_another_has_nothing_of_it,
		the_page_fits_its_buffer_and_names_every_part,
		identity_lines_hold_no_line_ends_of_the_peer,
		an_identity_line_that_does_not_fit_is_left_out_whole,
		agents_are_known_by_address_without_port,
	};
	if (sodium_init() < 0)
		return 1;
	return suite_run_with("resource", before, facts, SUITE_LEN(facts));
}
