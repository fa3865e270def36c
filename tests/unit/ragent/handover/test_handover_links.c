/* test_handover_links.c: facts of the descriptors of a link that go to another process: its memory and its process. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ragent/link/link_internal.h"
#include "tests/unit/ragent/successor.h"
#include "tests/unit/unit.h"

static unsigned link_fds; /* of every link that was heard of */

static int counting_successor_hears(void *ctx, const struct handover_message *m)
{
	if (m->type == HANDOVER_LINK)
		ck_assert_uint_eq(m->fd_count, link_fds);
	return successor_hears(ctx, m);
}

START_TEST(the_memory_of_a_link_goes_along)
{
	static const enum link_bytes bytes[] = { LINK_BYTES_ON_SOCKET, LINK_BYTES_IN_MEMORY };

	for (size_t i = 0; i < FACTS_LEN(bytes); i++) {
		if (i)
			dispatcher_stop();
		dispatcher_start(&(struct dispatcher_wish){ .bytes = bytes[i] });
		struct successor *s = successor_create();
		link_fds = bytes[i] == LINK_BYTES_IN_MEMORY ? 2 : 1;
		ck_assert_int_eq(handover_worker_pack(d.rw, counting_successor_hears, s), 0);
		ck_assert_uint_eq(s->messages, AGENTS + 1);
		successor_commit(s);
		d.rw = s->rw;
	}
}
END_TEST

START_TEST(the_process_of_a_link_goes_along)
{
	static const struct {
		enum link_bytes bytes;
		unsigned fds;
	} rows[] = {
		{ LINK_BYTES_ON_SOCKET, 2 },
		{ LINK_BYTES_IN_MEMORY, 3 },
	};

	for (size_t i = 0; i < FACTS_LEN(rows); i++) {
		if (i)
			dispatcher_stop();
		dispatcher_start(
			&(struct dispatcher_wish){ .bytes = rows[i].bytes, .processes = AGENTS_NAME_THEMSELVES });
		struct successor *s = successor_create();
		link_fds = rows[i].fds;
		ck_assert_int_eq(handover_worker_pack(d.rw, counting_successor_hears, s), 0);
		successor_commit(s);
		d.rw = s->rw;
		ck_assert_int_ge(peer_process_fd(&d.rw->home.links.of[0].at[0]->process), 0);
	}
}
END_TEST

/* A third descriptor. */
static int generous_successor_hears(void *ctx, const struct handover_message *m)
{
	struct handover_message more = *m;

	if (m->type == HANDOVER_LINK)
		handover_message_put_fd(&more, STDERR_FILENO);
	return successor_hears(ctx, &more);
}

START_TEST(a_link_with_more_descriptors_than_it_can_have_is_refused)
{
	dispatcher_start(&(struct dispatcher_wish){ .bytes = LINK_BYTES_IN_MEMORY });
	struct successor *s = successor_create();
	ck_assert_int_lt(handover_worker_pack(d.rw, generous_successor_hears, s), 0);
	handover_worker_let_go(s->rw);
	handover_worker_resume(d.rw);
	wait_until(agents_up() == AGENTS);
}
END_TEST

UNIT(handover_links)
{
	const TTest *const facts[] = {
		the_memory_of_a_link_goes_along,
		the_process_of_a_link_goes_along,
		a_link_with_more_descriptors_than_it_can_have_is_refused,
	};

	return dispatcher_suite_run("handover_links", facts, FACTS_LEN(facts));
}
