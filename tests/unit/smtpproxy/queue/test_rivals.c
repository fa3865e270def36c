/* test_rivals.c: facts of a gateway that was cut off and finds its server marked by another one. */
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/smtpproxy/queue/queue_servers.h"
#include "tests/unit/unit.h"

#define RUN_C "cccccccccccccccccccccccccccccccccccccccc"
#define RIVAL "11111111111111111111111111111111"
#define THIRD "22222222222222222222222222222222"

/* No server has what is in memory any more, as far as this gateway knows. */
static void is_cut_off(void)
{
	marker_left_of(&q->shared.marker, a->index, RUN_A)->version = 5;
	q->joining.marked_version = 5;
	backup_give_up(a, "the test says so");
	backup_give_up(b, "the test says so");
}

/* a restarted, and RIVAL owns it. The marker is of @by. */
static void meets_the_rival(const char *by, const char *owners)
{
	struct marker *m = &a->sight.marker;

	connected(a, RUN_C);
	a->state = BACKUP_SEEN;
	a->asked_ms = now_ms;
	a->sight.state = SIGHT_MARKED;
	*m = (struct marker){ .epoch = EPOCH + 1, .version = 9, .nonce = RIVAL, .run_id = RUN_C, .members = { RUN_C } };
	memcpy(m->by, by, strlen(by));
	memcpy(m->owners, owners, strlen(owners));
	servers_consider(q);
}

static const char *ours_was_read(void)
{
	static char owners[OWNERS_LEN + 1];
	struct marker m = { .version = 5 };

	owners[0] = '\0';
	memcpy(m.by, q->shared.nonce, sizeof m.by);
	marker_note_owners(owners, &m);
	return owners;
}

START_TEST(rival_that_tells_that_it_read_this_one_deposes_it)
{
	comes(5000);
	is_cut_off();
	meets_the_rival(RIVAL, ours_was_read());
	ck_assert_int_eq(q->state, QUEUE_DEPOSED);
}
END_TEST

START_TEST(rival_that_read_others_only_does_not_depose)
{
	comes(5000);
	is_cut_off();
	meets_the_rival(RIVAL, "");
	ck_assert_int_eq(q->state, QUEUE_ACTIVE);
}
END_TEST

START_TEST(rival_of_an_earlier_release_does_not_depose)
{
	comes(5000);
	is_cut_off();
	meets_the_rival("", "");
	ck_assert_int_eq(q->state, QUEUE_ACTIVE);
}
END_TEST

START_TEST(rival_that_tells_who_marked_it_but_not_what_it_read_does_not_depose)
{
	comes(5000);
	is_cut_off();
	meets_the_rival(RIVAL, "");
	ck_assert_int_eq(q->state, QUEUE_ACTIVE);
}
END_TEST

/* The marker on the server is of another gateway still. */
START_TEST(rival_that_has_not_marked_the_server_yet_does_not_depose)
{
	comes(5000);
	is_cut_off();
	meets_the_rival(THIRD, ours_was_read());
	ck_assert_int_eq(q->state, QUEUE_ACTIVE);
	meets_the_rival(RIVAL, ours_was_read());
	ck_assert_int_eq(q->state, QUEUE_DEPOSED);
}
END_TEST

START_TEST(gateway_without_mail_is_deposed)
{
	is_cut_off();
	meets_the_rival("", "");
	ck_assert_int_eq(q->state, QUEUE_DEPOSED);
}
END_TEST

/* An old key is missing. */
static void reads_one_that_it_cannot_open(void)
{
	const uint8_t sealed[100] = { 0 };
	char field[ITEM_FIELD_LEN];

	item_field(ITEM_MESSAGE, 5000, field);
	reading_item(q, a, field, sizeof field, sealed, sizeof sealed);
	ck_assert_int_eq(item_find(&q->items, 5000)->state, ITEM_OPAQUE);
}

START_TEST(gateway_whose_mail_cannot_be_opened_is_not_deposed)
{
	reads_one_that_it_cannot_open();
	is_cut_off();
	meets_the_rival(RIVAL, "");
	ck_assert_int_eq(q->state, QUEUE_ACTIVE);
}
END_TEST

START_TEST(stop_waits_for_a_server_that_lacks_mail_that_cannot_be_opened)
{
	reads_one_that_it_cannot_open();
	is_cut_off();
	queue_stop(q, 60000);
	uv_run(worker_loop(q->shared.worker), UV_RUN_NOWAIT); /* a tick */
	ck_assert_int_eq(q->state, QUEUE_FLUSHING);
}
END_TEST

UNIT(rivals)
{
	const TTest *facts[] = {
		rival_that_tells_that_it_read_this_one_deposes_it,
		rival_that_read_others_only_does_not_depose,
		rival_of_an_earlier_release_does_not_depose,
		rival_that_tells_who_marked_it_but_not_what_it_read_does_not_depose,
		rival_that_has_not_marked_the_server_yet_does_not_depose,
		gateway_without_mail_is_deposed,
		gateway_whose_mail_cannot_be_opened_is_not_deposed,
		stop_waits_for_a_server_that_lacks_mail_that_cannot_be_opened,
	};
	return suite_run_with("rivals", begin, facts, SUITE_LEN(facts));
}
