/* load_result.c: adding up, and both outputs from the same rows of counts and phases. */
#include "bench/load/load_result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/measure/report.h"

/* A generator that was busy all the time measures itself. */
#define BUSY_SHARE 0.9

static const struct report_name counts[] = {
#define X(name, key, sentence) [LOAD_##name] = { key, sentence },
	LOAD_COUNTS(X)
#undef X
};

static const struct report_name phases[] = {
#define X(name, key, sentence) [LOAD_PHASE_##name] = { key, sentence },
	LOAD_PHASES(X)
#undef X
};

static void load_result_add(void *total, const void *result)
{
	struct load_result *sum = total;
	const struct load_result *r = result;

	for (unsigned i = 0; i < LOAD_COUNT_COUNT; i++)
		sum->counts[i] += r->counts[i];
	for (unsigned i = 0; i < LOAD_ALERTS_MAX; i++)
		sum->alerts[i] += r->alerts[i];
	tally_add(sum->agents, r->agents, LOAD_AGENTS_MAX);
	tally_add(sum->suites, r->suites, TALLY_SUITES_MAX);
	tally_add(sum->errors, r->errors, LOAD_ERRORS_MAX);
	sum->cpu_ns += r->cpu_ns;
	sum->waiting_ns += r->waiting_ns;
	sum->wall_ns += r->wall_ns;
	sum->clients += r->clients;
	sum->resting += r->resting;
	sum->retired += r->retired;
	for (unsigned i = 0; i < LOAD_PHASE_COUNT; i++)
		histogram_add(&sum->phases[i], &r->phases[i]);
}

bool load_result_has_failures(const struct load_result *r)
{
	static const enum load_count failures[] = { LOAD_HANDSHAKE_FAILED, LOAD_OTHER_STATUS, LOAD_WRONG_LENGTH,
		LOAD_WRONG_BYTES, LOAD_MALFORMED, LOAD_CUT, LOAD_UNANSWERED, LOAD_TIMEOUTS, LOAD_ALERTS };

	for (unsigned i = 0; i < sizeof failures / sizeof failures[0]; i++) {
		if (r->counts[failures[i]] > 0)
			return true;
	}
	return r->counts[LOAD_CONNECTED] < r->counts[LOAD_CONNECTIONS];
}

static double load_share(uint64_t ns, const struct load_result *r)
{
	return r->wall_ns > 0 ? (double)ns / (double)r->wall_ns : 0;
}

enum load_effort load_effort_of(const struct load_result *r)
{
	if (load_share(r->cpu_ns, r) >= BUSY_SHARE)
		return LOAD_SATURATED;
	return load_share(r->cpu_ns + r->waiting_ns, r) >= BUSY_SHARE ? LOAD_STARVED : LOAD_AT_EASE;
}

static double per_second(uint64_t n, const struct load_result *r)
{
	return report_rate(n, report_seconds(r->times.begin_ns, r->times.end_ns));
}

/* For people */

static void print_generator(FILE *to, unsigned number, const struct load_result *r)
{
	static const char *const words[] = {
		[LOAD_AT_EASE] = "",
		[LOAD_SATURATED] = ": SATURATED, the figures are its own limit and not the server's",
		[LOAD_STARVED] = ": STARVED by other processes, latencies include its waiting",
	};

	fprintf(to, "generator %-8u %9.1f %% CPU, %.1f %% waiting for one%s\n", number, 100 * load_share(r->cpu_ns, r),
		100 * load_share(r->waiting_ns, r), words[load_effort_of(r)]);
}

static void print_text(const struct load_result *sum, const struct load_result *each, unsigned count)
{
	const uint64_t *n = sum->counts;

	printf("%-18s %10.2f\n", "seconds", report_seconds(sum->times.begin_ns, sum->times.end_ns));
	report_counts(counts, n, LOAD_COUNT_COUNT);
	report_tally("errors", sum->errors, LOAD_ERRORS_MAX);
	report_tally("handshakes", sum->suites, TALLY_SUITES_MAX);
	report_tally("answers by", sum->agents, LOAD_AGENTS_MAX);
	printf("\n%-18s %10.1f\n", "handshakes/s", per_second(n[LOAD_FULL] + n[LOAD_RESUMED], sum));
	if (n[LOAD_ANSWERS] > 0)
		printf("%-18s %10.1f\n%-18s %10.2f\n", "answers/s", per_second(n[LOAD_ANSWERS], sum), "MiB/s",
			per_second(n[LOAD_BYTES], sum) / (1 << 20));
	report_latencies(phases, sum->phases, LOAD_PHASE_COUNT);
	printf("\n");
	for (unsigned i = 0; i < count; i++)
		print_generator(stdout, i, &each[i]);
}

static void load_result_show_progress(const void *sum, const void *last, double seconds)
{
	const struct load_result *now = sum, *before = last;
	uint64_t handshakes = 0, answers = now->counts[LOAD_ANSWERS] - before->counts[LOAD_ANSWERS];
	uint64_t failures = now->counts[LOAD_CONNECTIONS] - now->counts[LOAD_CONNECTED];
	static const enum load_count of_handshakes[] = { LOAD_FULL, LOAD_RESUMED };
	static const enum load_count of_failures[] = { LOAD_HANDSHAKE_FAILED, LOAD_CUT, LOAD_UNANSWERED,
		LOAD_TIMEOUTS };

	for (unsigned i = 0; i < sizeof of_handshakes / sizeof of_handshakes[0]; i++)
		handshakes += now->counts[of_handshakes[i]] - before->counts[of_handshakes[i]];
	for (unsigned i = 0; i < sizeof of_failures / sizeof of_failures[0]; i++)
		failures += now->counts[of_failures[i]];
	fprintf(stderr,
		"\r\033[K%5.0f s  %9.0f handshakes/s  %9.0f answers/s  %8.1f MiB/s  %" PRIu64 " resting  %" PRIu64
		" connecting or failed",
		report_seconds(now->times.begin_ns, now->times.end_ns), (double)handshakes / seconds,
		(double)answers / seconds,
		(double)(now->counts[LOAD_BYTES] - before->counts[LOAD_BYTES]) / seconds / (1 << 20),
		(uint64_t)now->resting, failures);
}

/* For programs */

static json_t *alerts_json(const struct load_result *r)
{
	json_t *out = json_object();
	char number[8];

	for (unsigned i = 0; i < LOAD_ALERTS_MAX; i++) {
		if (r->alerts[i] == 0)
			continue;
		snprintf(number, sizeof number, "%u", i);
		json_object_set_new(out, number, json_integer((json_int_t)r->alerts[i]));
	}
	return out;
}

static json_t *generators_json(const struct load_result *each, unsigned count)
{
	static const char *const words[] = {
		[LOAD_AT_EASE] = "at ease", [LOAD_SATURATED] = "saturated", [LOAD_STARVED] = "starved"
	};
	json_t *out = json_array();

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(out,
			json_pack("{s:f, s:f, s:s}", "cpu", load_share(each[i].cpu_ns, &each[i]), "waiting",
				load_share(each[i].waiting_ns, &each[i]), "effort", words[load_effort_of(&each[i])]));
	return out;
}

/* Also names busy generators on standard error. */
static int load_result_print_json(const struct load_result *sum, const struct load_result *each, unsigned count)
{
	const uint64_t *n = sum->counts;
	json_t *out = json_pack("{s:f, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:o, s:o}", "seconds",
		report_seconds(sum->times.begin_ns, sum->times.end_ns), "counts",
		report_counts_json(counts, n, LOAD_COUNT_COUNT), "alerts", alerts_json(sum), "errors",
		report_tally_json(sum->errors, LOAD_ERRORS_MAX), "agents",
		report_tally_json(sum->agents, LOAD_AGENTS_MAX), "suites",
		report_tally_json(sum->suites, TALLY_SUITES_MAX), "handshakes_per_s",
		per_second(n[LOAD_FULL] + n[LOAD_RESUMED], sum), "answers_per_s", per_second(n[LOAD_ANSWERS], sum),
		"bytes_per_s", per_second(n[LOAD_BYTES], sum), "latency",
		report_latencies_json(phases, sum->phases, LOAD_PHASE_COUNT), "generators",
		generators_json(each, count));

	for (unsigned i = 0; i < count; i++) {
		if (load_effort_of(&each[i]) != LOAD_AT_EASE)
			print_generator(stderr, i, &each[i]);
	}
	return report_print_json(out);
}

static int load_result_report(const void *total, const void *each, unsigned count, unsigned output)
{
	const struct load_result *sum = total;

	if (output == RESULT_TEXT)
		print_text(sum, each, count);
	else if (load_result_print_json(sum, each, count))
		return EXIT_FAILURE;
	return load_result_has_failures(sum) ? EXIT_FAILURE : EXIT_SUCCESS;
}

const struct result_kind load_result_kind = { "https", sizeof(struct load_result), load_result_add, load_result_report,
	load_result_show_progress };
