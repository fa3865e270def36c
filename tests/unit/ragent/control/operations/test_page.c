/* test_page.c: facts of listing connections. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/limits/admission.h"
#include "ragent/control/operations/page.h"
#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

#define CLIENTS 25u

static int clients[CLIENTS];

static void begin(void)
{
	dispatcher_start(NULL);
	for (unsigned i = 0; i < CLIENTS; i++)
		clients[i] = client_connect(i % 5 ? "sf" : "sl");
	wait_until(admission_total(d.shared.admission) == CLIENTS);
}

static void end(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		close(clients[i]);
}

static int in_order(const struct page *p)
{
	for (size_t i = 1; i < p->count; i++)
		if (memcmp(p->rows[i - 1].id.bytes, p->rows[i].id.bytes, CONNECTION_ID_LEN) >= 0)
			return 0;
	return 1;
}

/* One worker's page through the merge, as the API gets it. */
static struct page *page(const struct control_query *q)
{
	struct gather *g = calloc(1, sizeof *g + sizeof g->parts[0]);

	g->count = 1;
	g->parts[0].result = page_create(d.rw, q);
	struct page *p = page_merge(g, q->limit);
	free(g);
	ck_assert_ptr_nonnull(p);
	return p;
}

START_TEST(a_page_holds_the_lowest_ids_in_order_and_says_that_there_are_more)
{
	begin();
	struct page *all = page(&(struct control_query){ .limit = 1000 });
	ck_assert_uint_eq(all->count, CLIENTS);
	ck_assert_int_eq(all->more, PAGE_IS_LAST);
	ck_assert(in_order(all));
	struct page *first = page(&(struct control_query){ .limit = 10 });
	ck_assert_uint_eq(first->count, 10);
	ck_assert_int_eq(first->more, PAGE_GOES_ON);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_mem_eq(first->rows[i].id.bytes, all->rows[i].id.bytes, CONNECTION_ID_LEN);
	page_destroy(all);
	page_destroy(first);
	end();
}
END_TEST

START_TEST(pages_behind_one_another_hold_every_connection_once)
{
	struct control_query q = { .limit = 4 };
	unsigned seen = 0;

	begin();
	for (;;) {
		struct page *p = page(&q);
		ck_assert(in_order(p));
		seen += (unsigned)p->count;
		const int is_last = p->more == PAGE_IS_LAST;
		q.ids = QUERY_BEHIND;
		q.id = p->rows[p->count - 1].id;
		page_destroy(p);
		if (is_last)
			break;
	}
	ck_assert_uint_eq(seen, CLIENTS);
	end();
}
END_TEST

START_TEST(a_page_of_exactly_the_limit_is_the_last)
{
	begin();
	struct page *p = page(&(struct control_query){ .limit = CLIENTS });
	ck_assert_uint_eq(p->count, CLIENTS);
	ck_assert_int_eq(p->more, PAGE_IS_LAST);
	page_destroy(p);
	end();
}
END_TEST

START_TEST(filters_leave_out_the_others)
{
	struct address_net here, elsewhere;

	begin();
	address_net_parse("127.0.0.0/8", &here);
	address_net_parse("10.0.0.0/8", &elsewhere);
	struct page *p = page(&(struct control_query){ .limit = 100, .listener = "sl" });
	ck_assert_uint_eq(p->count, CLIENTS / 5);
	page_destroy(p);
	p = page(&(struct control_query){ .limit = 100, .client = here });
	ck_assert_uint_eq(p->count, CLIENTS);
	page_destroy(p);
	p = page(&(struct control_query){ .limit = 100, .client = elsewhere });
	ck_assert_uint_eq(p->count, 0);
	page_destroy(p);
	p = page(&(struct control_query){ .limit = 100, .agent = "a0" });
	ck_assert_uint_eq(p->count, 0);
	page_destroy(p);
	end();
}
END_TEST

UNIT(page)
{
	const TTest *const facts[] = {
		a_page_holds_the_lowest_ids_in_order_and_says_that_there_are_more,
		pages_behind_one_another_hold_every_connection_once,
		a_page_of_exactly_the_limit_is_the_last,
		filters_leave_out_the_others,
	};

	return dispatcher_suite_run("page", facts, sizeof facts / sizeof facts[0]);
}
