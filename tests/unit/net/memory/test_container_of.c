/* test_container_of.c: facts of the way back from a member to its struct. */
#include <stdint.h>

#include "net/memory/container_of.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

struct holder {
	char before[3];
	struct {
		uint64_t first;
		uint32_t second;
	} inner;
};

START_TEST(a_member_leads_to_its_struct)
{
	struct holder h;
	ck_assert_ptr_eq(container_of(&h.inner.first, struct holder, inner.first), &h);
	ck_assert_ptr_eq(container_of(&h.inner.second, struct holder, inner.second), &h);
}
END_TEST

START_TEST(a_pointer_to_const_leads_there_too)
{
	const struct holder h = { .before = "ab" };
	const uint32_t *second = &h.inner.second;
	ck_assert_ptr_eq(container_of(second, const struct holder, inner.second), &h);
}
END_TEST

UNIT(container_of)
{
	const TTest *facts[] = { a_member_leads_to_its_struct, a_pointer_to_const_leads_there_too };
	return suite_run("container_of", facts, SUITE_LEN(facts));
}
