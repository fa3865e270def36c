/* test_lease.c: facts of the lease; time is an argument. */
#include "smtpproxy/queue/lease.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(lease_holds_from_when_its_renewal_was_sent)
{
	struct lease l;

	l = (struct lease){ .len_ms = 5000 };
	ck_assert(!lease_holds(&l, 1000));
	lease_renewed(&l, 1000);
	ck_assert(lease_holds(&l, 1000));
	ck_assert(lease_holds(&l, 5999));
	ck_assert(!lease_holds(&l, 6000));
}
END_TEST

START_TEST(late_answer_of_an_older_renewal_shortens_nothing)
{
	struct lease l;

	l = (struct lease){ .len_ms = 5000 };
	lease_renewed(&l, 2000);
	lease_renewed(&l, 1000);
	ck_assert(lease_holds(&l, 6999));
}
END_TEST

START_TEST(former_owner_is_waited_out)
{
	struct lease l;

	l = (struct lease){ .len_ms = 5000 };
	lease_wait_out(&l, 1000);
	lease_renewed(&l, 5500);
	ck_assert(!lease_holds(&l, 5999));
	ck_assert(lease_holds(&l, 6000));
}
END_TEST

START_TEST(dropped_lease_holds_no_more)
{
	struct lease l;

	l = (struct lease){ .len_ms = 5000 };
	lease_renewed(&l, 1000);
	l.until_ms = 0;
	ck_assert(!lease_holds(&l, 1001));
}
END_TEST

UNIT(lease)
{
	const TTest *facts[] = {
		lease_holds_from_when_its_renewal_was_sent,
		late_answer_of_an_older_renewal_shortens_nothing,
		former_owner_is_waited_out,
		dropped_lease_holds_no_more,
	};
	return suite_run("lease", facts, SUITE_LEN(facts));
}
