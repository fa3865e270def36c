/* test_connection_fence.c: facts of an agent that was cut off from RAgent, in every state of a connection: from then on
 * it seals nothing, says nothing, cuts its backend off, and keeps no key; what it had then counts for nothing.
 */
#include <string.h>

#include "proto/error.h"
#include "sslagent/tls/live_internal.h"
#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

#define HALF "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\nhalf of it"
#define POST "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nbuy"

static struct home *home; /* of the owner that will be cut off */

static void in_handshake(void)
{
	hello("http", home, CSSL__LINK_OPEN__DISPOSITION__KEEP, TLS13);
}

static void as_owner(void)
{
	keep("http", home, TLS13);
}

static void asked(void)
{
	keep("http", home, TLS13);
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
}

static void answering(void)
{
	asked();
	backend_say_text(HALF);
	client_expect_text(HALF);
}

static void passing(void)
{
	answering();
	manners.passes = PASSES_HELD;
	fake_ragent_ask_move(&r, "a2");
}

static void settling(void)
{
	a1.cluster.host = a2.cluster.host = PASSES_NOT;
	answering();
	fake_ragent_ask_move_within(&r, "a2", 60000);
}

static void frozen(void)
{
	keep("http", home, TLS13);
	hand_off_to(&a2);
}

static void taken_over(const char *text)
{
	keep("http", &a2, TLS13);
	say_text(text);
	backend_accept();
	backend_expect_text(text);
	fake_ragent_lose(&r);
	manners.commits = COMMITS_HELD;
	ck_assert_int_eq(fake_ragent_adopt(&r, &home->worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
}

static void recovering(void)
{
	taken_over(GET);
}

static void ending(void)
{
	taken_over(POST);
	carry_on();
}

static const struct {
	enum connection_state state;
	void (*reach)(void);
} places[] = {
	{ CONNECTION_HANDSHAKING, in_handshake },
	{ CONNECTION_OWNER, as_owner },
	{ CONNECTION_OWNER, asked },
	{ CONNECTION_OWNER, answering },
	{ CONNECTION_PASSING, passing },
	{ CONNECTION_SETTLING, settling },
	{ CONNECTION_FROZEN, frozen },
	{ CONNECTION_RECOVERING, recovering },
	{ CONNECTION_ENDING, ending },
};

static unsigned said_so_far(void)
{
	unsigned n = 0;

	for (unsigned type = 0; type < 256; type++)
		n += r.current->said[type];
	return n;
}

START_TEST(an_agent_that_is_cut_off_says_nothing_more)
{
	home = &a1;
	places[_i].reach();
	ck_assert_int_eq(state(), places[_i].state);
	unsigned said = said_so_far();
	uint64_t sealed = counted(COUNT_RECORDS_SEALED), updates = counted(COUNT_KEY_UPDATES_SENT);

	fake_ragent_lose(&r);
	if (backend >= 0) /* its answer is on the way just now */
		ck_assert_int_eq(write(backend, lots, 5000) != 0, 1);
	fake_cluster_finish_passes(&a1.cluster, 0);
	carry_on();
	ck_assert_uint_eq(said_so_far(), said);
	ck_assert_uint_eq(counted(COUNT_RECORDS_SEALED), sealed);
	ck_assert_uint_eq(counted(COUNT_KEY_UPDATES_SENT), updates);
	ck_assert_uint_eq(home->worker.table.count, 0);
	ck_assert_uint_eq(home->cluster.gone, 0); /* who takes over may want the live part */
}
END_TEST

START_TEST(it_keeps_no_key)
{
	home = &a1;
	places[_i].reach();
	fake_ragent_lose(&r);
	ck_assert(LIST_EMPTY(&a1.worker.live_pool->lives.with_room)); /* wiped on free */
	ck_assert(LIST_EMPTY(&a1.worker.frozen.with_room));
}
END_TEST

/* A backend must not take half an upload for a whole one. */
START_TEST(its_backend_sees_a_reset)
{
	static void (*const with_backend[])(void) = { asked, answering, settling };

	home = &a1;
	with_backend[_i]();
	fake_ragent_lose(&r);
	ck_assert_int_eq(backend_end(), -1);
}
END_TEST

START_TEST(it_cannot_own_again_under_what_it_had)
{
	home = &a1;
	asked();
	fake_ragent_lose(&r);
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	ck_assert_int_eq(fake_cluster_try(&a1.cluster, &r.id, 1), CSSL_E_REPLAY);
	ck_assert_int_eq(fake_cluster_try(&a1.cluster, &r.id, 2), CSSL_E_REPLAY);
	ck_assert_int_eq(fake_cluster_try(&a1.cluster, &r.id, 3), 0);
}
END_TEST

START_TEST(the_same_connection_comes_back_to_it_only_as_a_new_ownership)
{
	home = &a1;
	asked();
	fake_ragent_lose(&r);
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	backend_accept();
	backend_expect_text(GET);
	fake_ragent_lose(&r);
	ck_assert_int_eq(fake_ragent_adopt(&r, &a1.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	backend_accept();
	backend_expect_text(GET);
	ck_assert_uint_eq(fake_owner(&r)->epoch, 3);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
}
END_TEST

UNIT(connection_fence)
{
	const struct connection_fact facts[] = {
		{ an_agent_that_is_cut_off_says_nothing_more, FACTS_LEN(places) },
		{ it_keeps_no_key, FACTS_LEN(places) },
		{ its_backend_sees_a_reset, 3 },
		{ it_cannot_own_again_under_what_it_had, 0 },
		{ the_same_connection_comes_back_to_it_only_as_a_new_ownership, 0 },
	};

	return connection_suite_run("connection_fence", facts, FACTS_LEN(facts));
}
