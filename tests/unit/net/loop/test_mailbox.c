/* test_mailbox.c: facts of calls that other threads ask for. */
#include <pthread.h>
#include <string.h>

#include "net/loop/mailbox.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static uv_loop_t loop;
static struct mailbox box;
static unsigned woken;
static char said[8];

static void on_mail(uv_async_t *async)
{
	ck_assert_ptr_eq(async->data, said);
	woken++;
	mailbox_empty(&box, NULL);
}

static void say_one(struct worker *w, void *arg)
{
	said[strlen(said)] = *(const char *)arg;
}

static void say_and_post(struct worker *w, void *arg)
{
	say_one(w, arg);
	ck_assert_int_eq(mailbox_post(&box, say_one, (void *)"z"), 0);
}

static void box_open(void)
{
	woken = 0;
	memset(said, 0, sizeof said);
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(mailbox_init(&box, &loop, on_mail, said), 0);
}

static void box_close(void)
{
	mailbox_close(&box);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}

static void *post_two(void *arg)
{
	mailbox_post(&box, say_one, (void *)"a");
	mailbox_post(&box, say_one, (void *)"b");
	return arg;
}

START_TEST(calls_of_another_thread_come_in_their_order)
{
	pthread_t other;

	box_open();
	ck_assert_int_eq(pthread_create(&other, NULL, post_two, NULL), 0);
	pthread_join(other, NULL);
	ck_assert_str_eq(said, "");
	uv_run(&loop, UV_RUN_ONCE);
	ck_assert_str_eq(said, "ab");
	box_close();
}
END_TEST

START_TEST(a_call_may_ask_for_one_more)
{
	box_open();
	ck_assert_int_eq(mailbox_post(&box, say_and_post, (void *)"a"), 0);
	mailbox_empty(&box, NULL);
	ck_assert_str_eq(said, "a");
	mailbox_empty(&box, NULL);
	ck_assert_str_eq(said, "az");
	box_close();
}
END_TEST

START_TEST(waking_needs_no_call)
{
	box_open();
	mailbox_wake(&box);
	uv_run(&loop, UV_RUN_ONCE);
	ck_assert_uint_eq(woken, 1);
	box_close();
}
END_TEST

START_TEST(it_ends_only_when_it_is_empty_and_then_refuses)
{
	box_open();
	ck_assert_int_eq(mailbox_post(&box, say_one, (void *)"a"), 0);
	ck_assert(!mailbox_end(&box));
	mailbox_empty(&box, NULL);
	ck_assert(mailbox_end(&box));
	ck_assert_int_eq(mailbox_post(&box, say_one, (void *)"b"), CSSL_E_STATE);
	mailbox_empty(&box, NULL);
	ck_assert_str_eq(said, "a");
	box_close();
}
END_TEST

UNIT(mailbox)
{
	const TTest *const facts[] = {
		calls_of_another_thread_come_in_their_order,
		a_call_may_ask_for_one_more,
		waking_needs_no_call,
		it_ends_only_when_it_is_empty_and_then_refuses,
	};
	return suite_run("mailbox", facts, SUITE_LEN(facts));
}
