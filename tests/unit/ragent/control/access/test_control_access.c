/* test_control_access.c: facts of who may ask what: claims without a socket. */
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ragent/control/access/control_access.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define READER   "reader"
#define OPERATOR "operator"

static struct control_access a;
static struct access_refusal why;
static char path[] = "/tmp/cssl-access-XXXXXX";

static void write_line(FILE *f, const char *name, const char *role, const char *token)
{
	uint8_t hash[32];
	char hex[65];

	crypto_generichash(hash, sizeof hash, (const uint8_t *)token, strlen(token), NULL, 0);
	fprintf(f, "%s %s %s\n", name, role, sodium_bin2hex(hex, sizeof hex, hash, sizeof hash));
}

/* Tokens of a reader and of an operator, and the certificate of Alice, who reads. */
static void begin(void)
{
	char error[256];

	strcpy(path + sizeof path - 7, "XXXXXX");
	FILE *f = fdopen(mkstemp(path), "w");
	ck_assert_ptr_nonnull(f);
	write_line(f, "watcher", "read", READER);
	write_line(f, "night-shift", "operate", OPERATOR);
	fputs("alice read cn=Alice\nbob operate cn=Bob\n", f);
	fclose(f);
	a = (struct control_access){ .names = CONTROL_NAMES_BELIEVED };
	ck_assert_msg(access_load(&a, path, error, sizeof error) == 0, "%s", error);
}

static void end(void)
{
	unlink(path);
	free(a.tokens);
}

static const struct sockaddr *host(uint8_t last)
{
	static struct sockaddr_in address;

	address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000000u + last) };
	return (const struct sockaddr *)&address;
}

static struct access_claim claim(const char *method, enum control_role need, const char *authorization, const char *cn)
{
	return (struct access_claim){ .source = host(1),
		.common_name = cn,
		.method = method,
		.path = "/v1",
		.need = need,
		.authorization = authorization,
		.host = "api.example" };
}

static enum access_verdict judged(const struct access_claim *c)
{
	return access_judge(&a, c, 1000, &why);
}

static unsigned status_of(const char *method, enum control_role need, const char *authorization, const char *cn)
{
	const struct access_claim c = claim(method, need, authorization, cn);

	return judged(&c) == ACCESS_REFUSED ? why.status : 0;
}

START_TEST(a_token_allows_what_its_role_has)
{
	begin();
	ck_assert_uint_eq(status_of("GET", CONTROL_ROLE_READ, "Bearer " READER, ""), 0);
	ck_assert_uint_eq(status_of("POST", CONTROL_ROLE_OPERATE, "Bearer " READER, ""), 403);
	ck_assert_str_eq(why.reason, "the token 'watcher' has the role read, this needs operate");
	ck_assert_uint_eq(status_of("POST", CONTROL_ROLE_OPERATE, "Bearer " OPERATOR, ""), 0);
	ck_assert_uint_eq(status_of("GET", CONTROL_ROLE_READ, NULL, ""), 401);
	ck_assert_str_eq(why.header_name, "WWW-Authenticate");
	ck_assert_str_eq(why.header_value, "Bearer realm=\"cssl\"");
	end();
}
END_TEST

START_TEST(what_is_for_all_proves_nobody)
{
	begin();
	const struct access_claim stranger = claim("GET", CONTROL_ROLE_NONE, NULL, "");
	struct access_claim owner = claim("POST", CONTROL_ROLE_OPERATE, NULL, "");
	ck_assert_int_eq(judged(&stranger), ACCESS_OPEN);
	owner.source = &(const struct sockaddr){ .sa_family = AF_UNIX };
	ck_assert_int_eq(judged(&owner), ACCESS_PROVEN);
	ck_assert_str_eq(access_name(&a, &owner), "socket");
	end();
}
END_TEST

START_TEST(only_unknown_tokens_are_guesses)
{
	begin();
	for (unsigned i = 0; i < 2 * GUARD_FAILURES_MAX; i++)
		ck_assert_uint_eq(status_of("GET", CONTROL_ROLE_READ, NULL, ""), 401);
	for (unsigned i = 0; i < GUARD_FAILURES_MAX; i++)
		ck_assert_uint_eq(status_of("GET", CONTROL_ROLE_READ, "Bearer guess", ""), 401);
	ck_assert_uint_eq(status_of("GET", CONTROL_ROLE_READ, "Bearer guess", ""), 429);
	ck_assert_str_eq(why.header_name, "Retry-After");
	ck_assert_str_eq(why.header_value, "60");
	ck_assert_uint_eq(status_of("GET", CONTROL_ROLE_READ, "Bearer " READER, ""), 0);
	end();
}
END_TEST

START_TEST(a_certificate_alone_changes_nothing_for_another_site)
{
	begin();
	struct access_claim c = claim("POST", CONTROL_ROLE_OPERATE, NULL, "Bob");
	ck_assert_int_eq(judged(&c), ACCESS_REFUSED);
	ck_assert_uint_eq(why.status, 403);
	c.content_type = "application/json; charset=utf-8";
	ck_assert_int_eq(judged(&c), ACCESS_PROVEN);
	c.origin = "https://api.example";
	c.fetch_site = "same-origin";
	ck_assert_int_eq(judged(&c), ACCESS_PROVEN);
	c.origin = "https://elsewhere.example";
	ck_assert_int_eq(judged(&c), ACCESS_REFUSED);
	c.origin = NULL;
	c.fetch_site = "cross-site";
	ck_assert_int_eq(judged(&c), ACCESS_REFUSED);
	ck_assert_str_eq(why.reason, "a page of another site sent this");
	c.method = "GET"; /* it shows, and changes nothing */
	ck_assert_int_eq(judged(&c), ACCESS_PROVEN);
	end();
}
END_TEST

START_TEST(a_token_beside_a_certificate_may_allow_more)
{
	begin();
	ck_assert_uint_eq(status_of("GET", CONTROL_ROLE_READ, NULL, "Alice"), 0);
	ck_assert_uint_eq(status_of("POST", CONTROL_ROLE_OPERATE, NULL, "Alice"), 403);
	ck_assert_str_eq(why.reason, "the certificate of 'alice' has the role read, this needs operate");
	ck_assert_uint_eq(status_of("POST", CONTROL_ROLE_OPERATE, "Bearer " OPERATOR, "Alice"), 0);
	ck_assert_uint_eq(status_of("GET", CONTROL_ROLE_READ, NULL, "Mallory"), 401);
	end();
}
END_TEST

START_TEST(the_log_has_the_name_with_the_greater_role)
{
	begin();
	const struct access_claim both = claim("GET", CONTROL_ROLE_READ, "Bearer " OPERATOR, "Alice");
	const struct access_claim one = claim("GET", CONTROL_ROLE_READ, "Bearer " READER, "Bob");
	const struct access_claim none = claim("GET", CONTROL_ROLE_READ, NULL, "");
	ck_assert_str_eq(access_name(&a, &both), "night-shift");
	ck_assert_str_eq(access_name(&a, &one), "bob");
	ck_assert_str_eq(access_name(&a, &none), "nobody");
	end();
}
END_TEST

START_TEST(tokens_that_cannot_be_read_leave_the_old_ones)
{
	char error[256];

	begin();
	ck_assert_int_lt(access_load(&a, "/tmp/cssl-no-such-file", error, sizeof error), 0);
	ck_assert_uint_eq(status_of("GET", CONTROL_ROLE_READ, "Bearer " READER, ""), 0);
	end();
}
END_TEST

UNIT(control_access)
{
	const TTest *const facts[] = { a_token_allows_what_its_role_has, what_is_for_all_proves_nobody,
		only_unknown_tokens_are_guesses, a_certificate_alone_changes_nothing_for_another_site,
		a_token_beside_a_certificate_may_allow_more, the_log_has_the_name_with_the_greater_role,
		tokens_that_cannot_be_read_leave_the_old_ones };

	return suite_run("control access", facts, SUITE_LEN(facts));
}
