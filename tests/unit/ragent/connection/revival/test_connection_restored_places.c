/* test_connection_restored_places.c: facts of addresses that a dead process has left and that cannot be: the connection
 * is reset and counted, and the one beside it in the same table goes on. And facts of values that it can do without.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/ragent/wrong.h"
#include "tests/unit/unit.h"

/* --- addresses --- */

/* It looks like whatever is expected there. */
static _Alignas(max_align_t) uint8_t outside[sizeof(struct trail)];

static void trail_outside(struct connection *c)
{
	c->slot.trail = outside;
}

static void trail_nowhere(struct connection *c)
{
	c->slot.trail = NULL;
}

static void trail_between(struct connection *c)
{
	c->slot.trail = (uint8_t *)c->slot.trail + 1;
}

static void trail_beyond_the_end(struct connection *c)
{
	c->slot.trail = end_of_table(sizeof(struct trail) / 2 / 16 * 16);
}

static void unique_id(struct connection *c, uint8_t *at, uint8_t len)
{
	c->endpoints.unique_id = at;
	c->endpoints.unique_id_len = len;
}

static void unique_id_nowhere(struct connection *c)
{
	unique_id(c, NULL, 4);
}

static void unique_id_outside(struct connection *c)
{
	unique_id(c, outside, 4);
}

static void unique_id_beyond_the_end(struct connection *c)
{
	unique_id(c, end_of_table(3), 4);
}

static void unique_id_too_long(struct connection *c)
{
	unique_id(c, end_of_table(200), 200);
}

static void lose_descriptor(struct connection *c)
{
	setsockopt(c->slot.fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 }, sizeof(struct linger));
	close(c->slot.fd);
	c->slot.fd = -1;
}

static void descriptor_of_no_connection(struct connection *c)
{
	lose_descriptor(c);
	c->slot.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
}

START_TEST(one_with_a_wrong_address_is_reset)
{
	static const struct wrong rows[] = {
		WRITTEN(trail_outside),
		WRITTEN(trail_nowhere),
		WRITTEN(trail_between),
		WRITTEN(trail_beyond_the_end),
		WRITTEN(unique_id_nowhere),
		WRITTEN(unique_id_outside),
		WRITTEN(unique_id_beyond_the_end),
		WRITTEN(unique_id_too_long),
		WRITTEN(descriptor_of_no_connection),
	};

	each_is_reset(make_owned, rows, FACTS_LEN(rows));
}
END_TEST

/* Names of @len bytes, the last of which are the last of the table. */
static void names_at_the_end(struct connection *c, const char *names, size_t len)
{
	struct agreed *a = (struct agreed *)end_of_table(sizeof *a + len);

	memcpy(a->names, names, len);
	left_by(c)->agreed = a;
}

static void names_outside(struct connection *c)
{
	left_by(c)->agreed = (struct agreed *)outside;
}

static void names_between(struct connection *c)
{
	left_by(c)->agreed = (struct agreed *)((uint8_t *)left_by(c)->agreed + 1);
}

static void names_beyond_the_end(struct connection *c)
{
	left_by(c)->agreed = (struct agreed *)end_of_table(sizeof(struct agreed) / 4 * 2);
}

static void names_without_room(struct connection *c)
{
	names_at_the_end(c, "", 0);
}

static void names_without_an_end(struct connection *c)
{
	names_at_the_end(c, "h2xxxxxx", 8);
}

static void names_that_go_on_and_on(struct connection *c)
{
	struct agreed *a = (struct agreed *)end_of_table(4096);

	memset(a->names, 'x', 2048);
	left_by(c)->agreed = a;
}

static void one_name_too_long(struct connection *c)
{
	struct agreed *a = (struct agreed *)end_of_table(8192);

	memset(a->names, 'x', NAME_MAX_LEN + 1);
	left_by(c)->agreed = a;
}

START_TEST(one_with_wrong_names_is_reset)
{
	static const struct wrong rows[] = {
		WRITTEN(names_outside),
		WRITTEN(names_between),
		WRITTEN(names_beyond_the_end),
		WRITTEN(names_without_room),
		WRITTEN(names_without_an_end),
		WRITTEN(names_that_go_on_and_on),
		WRITTEN(one_name_too_long),
	};

	each_is_reset(make_owned, rows, FACTS_LEN(rows));
}
END_TEST

/* The second name lacks its end: the room for it ends with the table. */
static void one_name_of_two(struct connection *c)
{
	names_at_the_end(c, "h2\0xxxxx", 8);
}

START_TEST(one_with_a_name_of_two_is_reset)
{
	static const struct wrong rows[] = { WRITTEN(one_name_of_two) };

	each_is_reset(make_owned, rows, FACTS_LEN(rows));
}
END_TEST

static void copy_outside(struct connection *c)
{
	left_by(c)->copies.current = (struct sealed_blob *)outside;
}

/* But for its place, it is a copy. */
static void copy_between(struct connection *c)
{
	const struct sealed_blob copy = { .len = 1 };
	uint8_t *at = end_of_table(4096) + 1;

	memcpy(at, &copy, sizeof copy);
	left_by(c)->copies.current = (struct sealed_blob *)at;
}

static void copy_beyond_the_end(struct connection *c)
{
	left_by(c)->copies.current = (struct sealed_blob *)end_of_table(4);
}

static void copy_that_ends_behind_the_table(struct connection *c)
{
	struct sealed_blob *b = (struct sealed_blob *)end_of_table(sizeof *b);

	b->len = 1;
	left_by(c)->copies.current = b;
}

static void copy_too_long(struct connection *c)
{
	left_by(c)->copies.current->len = COPY_MAX_LEN + 1;
}

static void copy_of_nothing(struct connection *c)
{
	left_by(c)->copies.current->len = 0;
}

START_TEST(one_with_a_wrong_copy_is_reset)
{
	static const struct wrong rows[] = {
		WRITTEN(copy_outside),
		WRITTEN(copy_between),
		WRITTEN(copy_beyond_the_end),
		WRITTEN(copy_that_ends_behind_the_table),
		WRITTEN(copy_too_long),
		WRITTEN(copy_of_nothing),
	};

	each_is_reset(make_owned, rows, FACTS_LEN(rows));
}
END_TEST
/* --- what a connection can do without --- */

static void note_nowhere(struct connection *c)
{
	image_left_by(c)->note = NULL;
}

static void note_outside(struct connection *c)
{
	image_left_by(c)->note = (struct sealed_blob *)outside;
}

static void note_between(struct connection *c)
{
	image_left_by(c)->note = (struct sealed_blob *)((uint8_t *)image_left_by(c)->note + 1);
}

static void note_of_nothing(struct connection *c)
{
	image_left_by(c)->note->len = 0;
}

static void note_too_long(struct connection *c)
{
	image_left_by(c)->note->len = COPY_MAX_LEN + 1;
}

static void note_that_ends_behind_the_table(struct connection *c)
{
	struct sealed_blob *note = (struct sealed_blob *)end_of_table(sizeof *note);

	note->len = 1;
	image_left_by(c)->note = note;
}

static struct connection *of_client(const struct live_connection *l)
{
	struct sockaddr_in at;
	socklen_t len = sizeof at;
	struct connection *c = d.rw->home.connections;

	ck_assert_int_eq(getsockname(l->fd, (struct sockaddr *)&at, &len), 0);
	while (c && c->endpoints.client_port != ntohs(at.sin_port))
		c = c->next;
	ck_assert_ptr_nonnull(c);
	return c;
}

/* Then no other agent can go on with the answer. */
START_TEST(a_wrong_note_is_no_note)
{
	static const struct wrong rows[] = {
		WRITTEN(note_nowhere),
		WRITTEN(note_outside),
		WRITTEN(note_between),
		WRITTEN(note_of_nothing),
		WRITTEN(note_too_long),
		WRITTEN(note_that_ends_behind_the_table),
	};
	const struct sealed_blob *note;

	die_with(make_owned, rows, FACTS_LEN(rows));
	expect_fates(FACTS_LEN(rows) + 1, 0);
	for (size_t i = 0; i < FACTS_LEN(rows); i++)
		ck_assert_msg(!of_client(&with[i])->busy->note.current, "%s", rows[i].what);
	note = of_client(&beside)->busy->note.current;
	ck_assert_uint_eq(note->len, 4);
	ck_assert_mem_eq(note->data, "note", 4);
	for (size_t i = 0; i < FACTS_LEN(rows); i++)
		close(with[i].fd);
	close(beside.fd);
}
END_TEST

static void values_of_one_process(struct connection *c)
{
	struct connection_now *was = left_by(c);

	was->attempts = UINT8_MAX;
	was->reading = UINT8_MAX;
	was->tail = TAIL_FIN;
	was->tail_told = UINT8_MAX;
	was->handshaking_at = INT16_MAX;
	was->copies.pending = was->copies.former = (struct sealed_blob *)outside;
	was->current.link = (struct link *)outside;
	image_left_by(c)->move_answer = UINT8_MAX;
	c->next = (struct connection *)outside;
	c->home = (struct connection_home *)outside;
	c->busy = (struct busy_part *)outside;
	c->front = (struct front *)outside;
}

START_TEST(values_of_the_dead_process_alone_are_made_anew)
{
	static const struct wrong rows[] = { WRITTEN(values_of_one_process) };

	die_with(make_owned, rows, FACTS_LEN(rows));
	expect_fates(2, 0);
	const struct connection *c = of_client(&with[0]);
	ck_assert_uint_eq(c->now.attempts, 0);
	ck_assert_uint_eq(c->now.reading, CLIENT_READING);
	ck_assert_uint_eq(c->now.tail, TAIL_NONE);
	ck_assert_uint_eq(c->now.tail_told, TAIL_UNTOLD);
	ck_assert_int_eq(c->now.handshaking_at, NO_AGENT);
	ck_assert_uint_eq(c->busy->move_answer, MOVE_ANSWER_NOT_DUE);
	ck_assert_ptr_null(c->now.copies.pending);
	ck_assert_str_eq(c->front->conf->name, "sf");
	close(with[0].fd);
	close(beside.fd);
}
END_TEST

START_TEST(one_without_a_descriptor_is_passed_over)
{
	static const struct wrong rows[] = { WRITTEN(lose_descriptor) };

	die_with(make_owned, rows, FACTS_LEN(rows));
	expect_fates(1, 0);
	close(with[0].fd);
	goes_on_beside();
}
END_TEST

/* Its agent is gone, so nothing more is read. */
START_TEST(of_one_that_has_ended_the_tail_does_not_count)
{
	static const struct wrong rows[] = { NOW(tail, TAIL_VIOLATION), NOW(owner, NO_AGENT) };

	die_with(make_lingering, rows, FACTS_LEN(rows));
	expect_fates(FACTS_LEN(rows) + 1, 0);
	for (size_t i = 0; i < FACTS_LEN(rows); i++) {
		client_expect_fin(with[i].fd);
		close(with[i].fd);
	}
	close(beside.fd);
}
END_TEST

UNIT(connection_restored_places)
{
	const TTest *const facts[] = {
		one_with_a_wrong_address_is_reset,
		one_with_wrong_names_is_reset,
		one_with_a_name_of_two_is_reset,
		one_with_a_wrong_copy_is_reset,
		a_wrong_note_is_no_note,
		values_of_the_dead_process_alone_are_made_anew,
		one_without_a_descriptor_is_passed_over,
		of_one_that_has_ended_the_tail_does_not_count,
	};

	return dispatcher_suite_run("connection_restored_places", facts, FACTS_LEN(facts));
}
