/* source_result.c: both reports from the same rows. */
#include "bench/mail/source_result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "bench/measure/report.h"

static const struct report_name counts[] = {
#define X(name, key, sentence) [SOURCE_##name] = { key, sentence },
	SOURCE_COUNTS(X)
#undef X
};

static const struct report_name phases[] = {
#define X(name, key, sentence) [SOURCE_PHASE_##name] = { key, sentence },
	SOURCE_PHASES(X)
#undef X
};

static double seconds_of(const struct source_result *r)
{
	return report_seconds(r->times.begin_ns, r->times.end_ns);
}

static double per_second(const struct source_result *r, enum source_count count)
{
	return report_rate(r->counts[count], seconds_of(r));
}

static void source_result_add(void *total, const void *result)
{
	struct source_result *sum = total;
	const struct source_result *r = result;

	sum->mails += r->mails;
	for (unsigned i = 0; i < SOURCE_COUNT_COUNT; i++)
		sum->counts[i] += r->counts[i];
	tally_add(sum->errors, r->errors, SOURCE_ERRORS_MAX);
	tally_add(sum->suites, r->suites, TALLY_SUITES_MAX);
	tally_add(sum->replies, r->replies, SOURCE_REPLIES_MAX);
	for (unsigned i = 0; i < SOURCE_PHASE_COUNT; i++)
		histogram_add(&sum->phases[i], &r->phases[i]);
}

static void print_text(const struct source_result *r)
{
	printf("%-18s %10.2f\n", "seconds", seconds_of(r));
	report_counts(counts, r->counts, SOURCE_COUNT_COUNT);
	report_tally("errors", r->errors, SOURCE_ERRORS_MAX);
	report_tally("handshakes", r->suites, TALLY_SUITES_MAX);
	report_tally("replies", r->replies, SOURCE_REPLIES_MAX);
	printf("\n%-18s %10.1f\n%-18s %10.2f\n", "mails/s", per_second(r, SOURCE_SENT), "MiB/s",
		per_second(r, SOURCE_BYTES) / (1 << 20));
	report_latencies(phases, r->phases, SOURCE_PHASE_COUNT);
}

static int source_result_print_json(const struct source_result *r)
{
	return report_print_json(json_pack("{s:f, s:o, s:o, s:o, s:o, s:f, s:f, s:o}", "seconds", seconds_of(r),
		"counts", report_counts_json(counts, r->counts, SOURCE_COUNT_COUNT), "errors",
		report_tally_json(r->errors, SOURCE_ERRORS_MAX), "suites",
		report_tally_json(r->suites, TALLY_SUITES_MAX), "replies",
		report_tally_json(r->replies, SOURCE_REPLIES_MAX), "mails_per_s", per_second(r, SOURCE_SENT),
		"bytes_per_s", per_second(r, SOURCE_BYTES), "latency",
		report_latencies_json(phases, r->phases, SOURCE_PHASE_COUNT)));
}

static int source_result_report(const void *sum, const void *each, unsigned count, unsigned output)
{
	const struct source_result *r = sum;

	if (output == RESULT_TEXT)
		print_text(r);
	else if (source_result_print_json(r) < 0)
		return EXIT_FAILURE;
	return r->counts[SOURCE_FAILED] + r->counts[SOURCE_LOST] + r->counts[SOURCE_INJECTED] > 0 ? EXIT_FAILURE
												  : EXIT_SUCCESS;
}

static void source_result_show_progress(const void *sum, const void *before, double seconds)
{
	const struct source_result *r = sum;
	const uint64_t *n = r->counts;
	const double s = report_seconds(r->times.begin_ns, uv_hrtime());
	const int is_terminal = isatty(STDERR_FILENO);

	fprintf(stderr,
		"%s%5.0f s  %" PRIu64 " of %" PRIu64 " mails  %.0f/s  %" PRIu64 " failed  %" PRIu64 " connections%s",
		is_terminal ? "\r\033[K" : "", s, n[SOURCE_SENT], r->mails, report_rate(n[SOURCE_SENT], s),
		n[SOURCE_FAILED], n[SOURCE_CONNECTED], is_terminal ? "" : "\n");
}

const struct result_kind source_result_kind = { "smtp-source", sizeof(struct source_result), source_result_add,
	source_result_report, source_result_show_progress };
