/* test_change_line.c: facts of the line of changes to a backup. */
#include <stdlib.h>

#include "smtpproxy/queue/backup/change_line.h"
#include "smtpproxy/queue/items/destination.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct change_line line;
static struct item_set set;

static struct item *item(uint64_t id, size_t len)
{
	return item_add(&set, ITEM_MESSAGE, id, calloc(1, len), len);
}

static void before(void)
{
	line = (struct change_line){ 0 };
	set = (struct item_set){ 0 };
}

static void end(void)
{
	change_clear(&line);
	item_set_clear(&set);
}

/* Sends the next call. Returns its number of changes. */
static uint32_t send_one(void)
{
	return change_next_call(&line, 0, &(struct change_call){ 0 });
}

static void answer_one(void)
{
	struct change_call call = change_call_answered(&line);

	for (uint32_t n = 0; n < call.changes; n++) {
		struct change c = change_pop(&line, CHANGE_MADE);

		if (c.item)
			item_drop(c.item);
	}
}

START_TEST(marker_waits_for_all_answers_before_it)
{
	struct item *i = item(1, 10);

	change_push(&line, CHANGE_PUT, i);
	change_push(&line, CHANGE_MARK, NULL);
	change_push(&line, CHANGE_PUT, i);
	ck_assert_uint_eq(send_one(), 1);
	ck_assert_uint_eq(send_one(), 0);
	answer_one();
	ck_assert_uint_eq(send_one(), 1);
	ck_assert_uint_eq(send_one(), 1);
	end();
}
END_TEST

START_TEST(call_has_changes_of_one_kind)
{
	struct item *i = item(1, 10);

	change_push(&line, CHANGE_PUT, i);
	change_push(&line, CHANGE_PUT, i);
	change_push(&line, CHANGE_DELETE, i);
	change_push(&line, CHANGE_MARK, NULL);
	change_push(&line, CHANGE_MARK, NULL);
	ck_assert_uint_eq(send_one(), 2);
	ck_assert_uint_eq(send_one(), 1);
	answer_one();
	answer_one();
	ck_assert_uint_eq(send_one(), 1);
	answer_one();
	ck_assert_uint_eq(send_one(), 1);
	ck_assert_uint_eq(send_one(), 0);
	end();
}
END_TEST

START_TEST(call_is_bounded_by_number_and_bytes)
{
	for (uint64_t id = 1; id <= 2 * CALL_CHANGES_MAX; id++)
		change_push(&line, CHANGE_PUT, item(id, 10));
	ck_assert_uint_eq(send_one(), CALL_CHANGES_MAX);
	ck_assert_uint_eq(send_one(), CALL_CHANGES_MAX);
	for (uint64_t id = 1000; id < 1004; id++)
		change_push(&line, CHANGE_PUT, item(id, CALL_BYTES_MAX / 2));
	change_push(&line, CHANGE_PUT, item(2000, 3 * CALL_BYTES_MAX));
	ck_assert_uint_eq(send_one(), 2);
	ck_assert_uint_eq(send_one(), 2);
	ck_assert_uint_eq(send_one(), 1);
	end();
}
END_TEST

START_TEST(message_and_its_decided_transaction_share_a_call)
{
	for (uint64_t id = 1; id < CALL_CHANGES_MAX; id++)
		change_push(&line, CHANGE_PUT, item(id, 10));
	struct item *message = item(1000, 10);

	message->with = item(1001, 10);
	item_hold(message->with);
	change_push(&line, CHANGE_PUT, message);
	change_push(&line, CHANGE_PUT, message->with);
	ck_assert_uint_eq(send_one(), CALL_CHANGES_MAX + 1);
	end();
}
END_TEST

START_TEST(window_bounds_what_is_unanswered)
{
	unsigned sent = 0;

	for (uint64_t id = 1; id <= 100; id++)
		change_push(&line, CHANGE_PUT, item(id, CALL_BYTES_MAX));
	while (send_one())
		sent++;
	ck_assert_uint_eq(sent, WINDOW_BYTES_MAX / CALL_BYTES_MAX);
	answer_one();
	ck_assert_uint_eq(send_one(), 1);
	ck_assert_uint_eq(send_one(), 0);
	end();
}
END_TEST

START_TEST(lost_connection_sends_all_unanswered_again)
{
	for (uint64_t id = 1; id <= 3 * CALL_CHANGES_MAX; id++)
		change_push(&line, CHANGE_PUT, item(id, 10));
	send_one();
	send_one();
	answer_one();
	ck_assert_uint_eq(change_unsend(&line), CALL_CHANGES_MAX);
	ck_assert_uint_eq(line.count, 2 * CALL_CHANGES_MAX);
	ck_assert_uint_eq(send_one(), CALL_CHANGES_MAX);
	ck_assert_uint_eq(change_at(&line, 0)->item->id, CALL_CHANGES_MAX + 1);
	end();
}
END_TEST

START_TEST(change_holds_its_item_until_it_is_answered)
{
	struct item *i = item(1, 10);

	change_push(&line, CHANGE_PUT, i);
	change_push(&line, CHANGE_DELETE, i);
	item_remove(&set, i);
	ck_assert_uint_eq(i->refs, 2);
	send_one();
	answer_one();
	ck_assert_uint_eq(i->refs, 1);
	end();
}
END_TEST

static void owes_two(struct destination_table *t)
{
	struct item *i = item(1, 10);

	line.backup = 1;
	i->to = destination_get(t, "a.example", 9, 1);
	change_push(&line, CHANGE_PUT, i);
	change_push(&line, CHANGE_DELETE, i);
	change_push(&line, CHANGE_MARK, NULL);
	ck_assert_uint_eq(i->to->changes[1].unanswered, 2);
	ck_assert_uint_eq(i->to->changes[0].unanswered, 0);
}

START_TEST(destination_lasts_until_its_changes_are_answered)
{
	struct destination_table t = { 0 };

	owes_two(&t);
	destination_sweep(&t);
	send_one();
	send_one();
	answer_one();
	destination_sweep(&t);
	ck_assert_uint_eq(t.names.count, 1);
	ck_assert_uint_eq(change_at(&line, 0)->item->to->changes[1].unanswered, 1);
	answer_one();
	destination_sweep(&t);
	ck_assert_uint_eq(t.names.count, 0);
	destination_table_clear(&t);
	end();
}
END_TEST

START_TEST(destination_lasts_until_the_line_with_its_changes_is_dropped)
{
	struct destination_table t = { 0 };

	owes_two(&t);
	destination_sweep(&t);
	ck_assert_uint_eq(t.names.count, 1);
	change_clear(&line);
	ck_assert_uint_eq(line.backup, 1);
	destination_sweep(&t);
	ck_assert_uint_eq(t.names.count, 0);
	destination_table_clear(&t);
	end();
}
END_TEST

UNIT(change_line)
{
	const TTest *facts[] = {
		marker_waits_for_all_answers_before_it,
		call_has_changes_of_one_kind,
		call_is_bounded_by_number_and_bytes,
		message_and_its_decided_transaction_share_a_call,
		window_bounds_what_is_unanswered,
		lost_connection_sends_all_unanswered_again,
		change_holds_its_item_until_it_is_answered,
		destination_lasts_until_its_changes_are_answered,
		destination_lasts_until_the_line_with_its_changes_is_dropped,
	};
	return suite_run_with("change_line", before, facts, SUITE_LEN(facts));
}
