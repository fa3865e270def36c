/* test_operations_levels.c: facts of the log level of all processes. */
#include "net/report/log.h"
#include "tests/unit/ragent/control/operations/operations_doubles.h"
#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

static struct operations o;

static void begin(void)
{
	dispatcher_start(NULL);
	o = (struct operations){ .main = w, .shared = &d.shared, .workers = &d.rw, .worker_count = 1 };
	log_set_level(LOG_ERROR); /* one with a name */
	fake_agent_die(d.agents[1]);
	wait_until(agents_up() == AGENTS - 1);
}

static void ask(const char *level, const char *node)
{
	operations_log_level(&o, &(const struct control_input){ .level = level, .node = node }, request);
}

/* All agents but the dead one tell their level. */
static void levels_are_told(void)
{
	Cssl__LinkResponse answer;
	Cssl__LinkResponse__LogLevel level = CSSL__LINK_RESPONSE__LOG_LEVEL__INIT;

	level.level = (char *)"debug";
	level.configured = (char *)"info";
	for (int agent = 0; agent < AGENTS; agent += 2) {
		cssl__link_request__free_unpacked(request_at(agent, &answer), NULL);
		answer.what_case = CSSL__LINK_RESPONSE__WHAT_LOG_LEVEL;
		answer.log_level = &level;
		fake_agent_say(d.agents[agent], 0, FRAME_RESPONSE, &answer.base);
	}
}

START_TEST(log_levels_are_told_of_all_who_answered)
{
	begin();
	ask(NULL, NULL);
	levels_are_told();
	answered_with(200);
	ck_assert_uint_eq(told_size("levels"), AGENTS + 1);
	ck_assert_str_eq(told_text("levels.a0.level"), "debug");
	ck_assert_str_eq(told_text("levels.a0.configured"), "info");
	ck_assert_str_eq(told_text("levels.a1.error"), "not up");
	ck_assert_ptr_nonnull(json_object_get(json_object_get(told("levels"), d.shared.self->name), "level"));
}
END_TEST

START_TEST(a_log_level_that_somebody_did_not_take_is_an_error)
{
	begin();
	ask("debug", "a1");
	answered_with(503);
	ck_assert_str_eq(told_text("error"), "not done by a1");
	ck_assert_uint_eq(told_size("levels"), 1);
	ask("configured", NULL);
	levels_are_told();
	answered_with(503);
	ck_assert_uint_eq(told_size("levels"), AGENTS + 1);
	ask("configured", d.shared.self->name);
	answered_with(200);
	ck_assert_uint_eq(told_size("levels"), 1);
	ask("debug", "nobody");
	answered_with(404);
}
END_TEST

UNIT(operations_levels)
{
	const TTest *const facts[] = {
		log_levels_are_told_of_all_who_answered,
		a_log_level_that_somebody_did_not_take_is_an_error,
	};

	return dispatcher_suite_run("operations_levels", facts, sizeof facts / sizeof facts[0]);
}
