/* test_path.c: facts of request paths. */
#include <string.h>

#include "csslctl/api.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct path p;

START_TEST(segments_are_encoded)
{
	path_start(&p, "/v1/agents");
	path_segment(&p, "a/1 ?\xc3\xbc");
	path_segment(&p, "drain");
	ck_assert_str_eq(p.text, "/v1/agents/a%2F1%20%3F%C3%BC/drain");
}
END_TEST

START_TEST(unreserved_characters_go_as_they_are)
{
	path_start(&p, "");
	path_segment(&p, "aZ09-._~");
	ck_assert_str_eq(p.text, "/aZ09-._~");
}
END_TEST

START_TEST(queries_are_joined_and_encoded)
{
	path_start(&p, "/v1/connections");
	path_query(&p, "limit", "5");
	path_query(&p, "agent", NULL);
	path_query(&p, "client", "10.0.0.0/8&x=y");
	ck_assert_str_eq(p.text, "/v1/connections?limit=5&client=10.0.0.0%2F8%26x%3Dy");
	ck_assert_int_eq(p.whole, PATH_WHOLE);
}
END_TEST

START_TEST(a_path_that_is_too_long_is_seen)
{
	char name[PATH_LEN_MAX + 1];
	memset(name, '/', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	path_start(&p, "/v1/agents");
	path_segment(&p, name);
	ck_assert_int_eq(p.whole, PATH_CUT);
	ck_assert_uint_eq(strlen(p.text), p.len);
}
END_TEST

UNIT(path)
{
	const TTest *facts[] = { segments_are_encoded, unreserved_characters_go_as_they_are,
		queries_are_joined_and_encoded, a_path_that_is_too_long_is_seen };
	return suite_run("path", facts, SUITE_LEN(facts));
}
