/* test_connection_memory.c: facts of running out of memory: each allocation that a connection makes in its life fails
 * once, in turn. connection*.c and what they stand on are built for it a second time, with an allocator that fails. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

void *failing_malloc(size_t len);
void *failing_calloc(size_t count, size_t len);
void *failing_realloc(void *old, size_t len);
void *failing_slabs_take(struct slabs *s);

static int armed;
static unsigned until_failure, failures;

static int fails_now(void)
{
	if (!armed || until_failure-- > 0)
		return 0;
	armed = 0;
	failures++;
	return 1;
}

void *failing_malloc(size_t len)
{
	return fails_now() ? NULL : malloc(len);
}

void *failing_calloc(size_t count, size_t len)
{
	return fails_now() ? NULL : calloc(count, len);
}

void *failing_realloc(void *old, size_t len)
{
	return fails_now() ? NULL : realloc(old, len);
}

void *failing_slabs_take(struct slabs *s)
{
	return fails_now() ? NULL : slabs_take(s);
}

static int lives(void)
{
	return r.current->connection != NULL && r.frozen != r.current;
}

static void a_while(void)
{
	for (unsigned i = 0; i < 6; i++) {
		carry();
		turn();
	}
}

static void converse_if_alive(void)
{
	if (!lives())
		return;
	say_text(GET);
	a_while();
	if (backend_waits())
		backend_take();
	a_while();
	if (backend >= 0 && lives())
		(void)!write(backend, ANSWER, strlen(ANSWER) - 1); /* it stays open */
	a_while();
}

static struct home *at; /* who owns it */

static void adopt_somewhere(struct home *first, struct home *then, Cssl__Cause cause)
{
	at = first;
	if (fake_ragent_adopt(&r, &first->worker, cause))
		return;
	at = then;
	fake_ragent_adopt(&r, &then->worker, cause);
}

/* To the other agent, or back, or nowhere. */
static void move_if_alive(void)
{
	struct home *from = at, *to = at == &a1 ? &a2 : &a1;

	if (!lives())
		return;
	fake_ragent_ask_move(&r, to->cluster.source.source.origin);
	a_while();
	if (r.frozen)
		adopt_somewhere(to, from, CSSL__CAUSE__CAUSE_MOVE);
	a_while();
}

/* A kept connection with a conversation that moves in its middle, there and back. */
static void kept_life(const char *listener)
{
	at = &a1;
	if (!try_hello(listener, &a1, CSSL__LINK_OPEN__DISPOSITION__KEEP, TLS13))
		return;
	a_while();
	converse_if_alive();
	move_if_alive();
	if (lives()) {
		say_key_update(1);
		a_while();
	}
	move_if_alive();
}

static void handed_off_life(const char *listener)
{
	if (!try_hello(listener, &a1, CSSL__LINK_OPEN__DISPOSITION__HAND_OFF, TLS12))
		return;
	a_while();
	if (r.frozen)
		adopt_somewhere(&a2, &a1, CSSL__CAUSE__CAUSE_HAND_OFF);
	converse_if_alive();
}

/* What nobody took, the real cluster closes after a while. */
static void drop_arrived(struct cluster *c)
{
	while (c->arrived_count > 0)
		passed_backend_destroy(&c->arrived[--c->arrived_count]);
}

static void end_life(void)
{
	armed = 0;
	drop_arrived(&a1.cluster);
	drop_arrived(&a2.cluster);
	fake_ragent_stop(&r);
	fake_ragent_start(&r, "http", WINDOW); /* for the fixture to stop */
	if (backend >= 0)
		backend_hang_up();
	fake_cluster_forget(&a1.cluster);
	fake_cluster_forget(&a2.cluster);
	turns(4);
	ck_assert_uint_eq(a1.worker.table.count + a2.worker.table.count, 0);
	ck_assert_uint_eq(a1.worker.handshakes + a2.worker.handshakes, 0);
}

static const struct {
	void (*live)(const char *listener);
	const char *listener;
} lives_of[] = { { kept_life, "http" }, { kept_life, "proxied" }, { handed_off_life, "pooled" } };

START_TEST(a_connection_that_runs_out_of_memory_ends_and_leaves_nothing)
{
	unsigned n = 0;

	for (unsigned before = 0; n == 0 || failures > before; n++) {
		before = failures;
		until_failure = n;
		armed = 1;
		lives_of[_i].live(lives_of[_i].listener);
		end_life();
	}
	ck_assert_msg(n >= 6, "only %u allocations were tried", n);
}
END_TEST

UNIT(connection_memory)
{
	const struct connection_fact facts[] = {
		{ a_connection_that_runs_out_of_memory_ends_and_leaves_nothing, FACTS_LEN(lives_of) },
	};

	return connection_suite_run("connection_memory", facts, FACTS_LEN(facts));
}
