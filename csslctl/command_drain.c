/* command_drain.c: empties an agent, and shows the progress. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "csslctl/ask.h"

#define LOOK_EVERY_MS 200u

static void draining_say(struct progress *p, const json_t *drain)
{
	char words[160], elapsed[QUANTITY_TEXT_MAX];
	const uint64_t total = member_integer(drain, "total"), left = member_integer(drain, "left");

	snprintf(words, sizeof words, "%" PRIu64 " left, %" PRIu64 " moved, %" PRIu64 " rested, %" PRIu64 " ended, %s",
		left, member_integer(drain, "moved"), member_integer(drain, "rested"), member_integer(drain, "ended"),
		duration_text(member_integer(drain, "elapsed_ms") * 1000, elapsed));
	progress_show(p, left < total ? total - left : 0, total, words, ask_now_ms());
}

/* Watch until the drain is over; *answer is the agent's last state. */
static enum exit_code draining_watch(struct invocation *in, const struct path *path, json_t **answer)
{
	const struct timespec pause = { .tv_nsec = LOOK_EVERY_MS * 1000000l };
	struct progress progress;
	enum exit_code code = EXIT_DONE;

	progress_start(&progress, &in->screen);
	interrupt_watch();
	while (code == EXIT_DONE && strcmp(member_text(*answer, "drain.state"), "draining") == 0 && !interrupted()) {
		draining_say(&progress, member(*answer, "drain"));
		nanosleep(&pause, NULL);
		json_decref(*answer);
		*answer = NULL;
		if (!interrupted())
			code = ask(in, "GET", path, NULL, answer);
	}
	progress_end(&progress);
	return code;
}

static void show_report(const struct invocation *in, const json_t *drain)
{
	char elapsed[QUANTITY_TEXT_MAX], longest[QUANTITY_TEXT_MAX];

	fprintf(in->screen.out,
		"%s is empty after %s\n"
		"  connections    %" PRIu64 "\n"
		"  moved          %" PRIu64 "\n"
		"  rested         %" PRIu64 "\n"
		"  ended          %" PRIu64 "\n"
		"  longest pause  %s\n",
		in->operands[0], duration_text(member_integer(drain, "elapsed_ms") * 1000, elapsed),
		member_integer(drain, "total"), member_integer(drain, "moved"), member_integer(drain, "rested"),
		member_integer(drain, "ended"), duration_text(member_integer(drain, "longest_pause_us"), longest));
}

/* Judge the result: the drain is over, or an operator has called it off. */
static enum exit_code draining_judge(const struct invocation *in, const json_t *agent)
{
	const json_t *drain = member(agent, "drain");
	const char *state = member_text(drain, "state");
	const uint64_t ended = member_integer(drain, "ended");

	if (strcmp(state, "none") == 0) {
		complain_of(in, NULL, "the drain was called off");
		return EXIT_REFUSED;
	}
	if (in->screen.form == SCREEN_JSON)
		show_json(in, agent);
	else
		show_report(in, drain);
	if (ended == 0)
		return EXIT_DONE;
	complain_of(in, "a longer --timeout gives connections more time to get to a checkpoint",
		"%" PRIu64 " connection%s could not leave in time and had to be ended", ended, ended == 1 ? "" : "s");
	return EXIT_REFUSED;
}

static enum exit_code wait_for_end(struct invocation *in, const struct path *path, json_t **answer)
{
	const enum exit_code code = draining_watch(in, path, answer);

	if (code != EXIT_DONE)
		return code;
	if (!interrupted())
		return draining_judge(in, *answer);
	complain_of(in, "`csslctl undrain` calls it off", "the drain goes on");
	return EXIT_REFUSED;
}

static json_t *drain_body(const struct invocation *in)
{
	uint32_t ms;

	if (!in->options[OPTION_TIMEOUT])
		return must(json_object());
	if (duration_parse(in->options[OPTION_TIMEOUT], DURATION_MAX_MS, &ms) < 0 || ms == 0)
		return NULL;
	return must(json_pack("{s:I}", "timeout_ms", (json_int_t)ms));
}

enum exit_code command_drain(struct invocation *in)
{
	struct path agent, order;
	json_t *answer, *body = drain_body(in);

	if (!body)
		return misused(
			in, "--timeout: '%s' is no time from 1ms to 1d, such as 30s", in->options[OPTION_TIMEOUT]);
	path_start(&agent, "/v1/agents");
	path_segment(&agent, in->operands[0]);
	order = agent;
	path_segment(&order, "drain");
	enum exit_code code = ask(in, "POST", &order, body, &answer);
	if (code == EXIT_DONE && in->options[OPTION_WAIT])
		code = wait_for_end(in, &agent, &answer);
	else if (code == EXIT_DONE && in->screen.form == SCREEN_JSON)
		show_json(in, answer);
	else if (code == EXIT_DONE)
		fprintf(in->screen.out,
			"%s drains, %" PRIu64 " connections to go; `csslctl agent %s` shows how far it is\n",
			in->operands[0], member_integer(answer, "drain.left"), in->operands[0]);
	json_decref(answer);
	return code;
}
