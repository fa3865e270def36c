/* source_result.c: both reports from the same rows. */
#include "bench/mail/source_result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
	return report_seconds(r->begin_ns, r->end_ns);
}

static double per_second(const struct source_result *r, enum source_count count)
{
	return report_rate(r->counts[count], seconds_of(r));
}

void source_result_note(struct source_result *r, const char *where, const char *what)
{
	char text[TALLY_TEXT_MAX];
	int len = snprintf(text, sizeof text, "%s: %s", where, what);
	size_t cut = len < (int)sizeof text ? (size_t)len : sizeof text - 1;
	tally_row(r->errors, SOURCE_ERRORS_MAX, text, cut)->count++;
}

int source_result_has_failures(const struct source_result *r)
{
	return r->counts[SOURCE_FAILED] + r->counts[SOURCE_LOST] + r->counts[SOURCE_INJECTED] > 0;
}

void source_result_text(const struct source_result *r)
{
	printf("%-18s %10.2f\n", "seconds", seconds_of(r));
	report_counts(counts, r->counts, SOURCE_COUNT_COUNT);
	report_tally("errors", r->errors, SOURCE_ERRORS_MAX);
	report_tally("handshakes", r->suites, TALLY_SUITES_MAX);
	printf("\n%-18s %10.1f\n%-18s %10.2f\n", "mails/s", per_second(r, SOURCE_SENT), "MiB/s",
		per_second(r, SOURCE_BYTES) / (1 << 20));
	report_latencies(phases, r->phases, SOURCE_PHASE_COUNT);
}

int source_result_json(const struct source_result *r)
{
	return report_print_json(json_pack("{s:f, s:o, s:o, s:o, s:f, s:f, s:o}", "seconds", seconds_of(r), "counts",
		report_counts_json(counts, r->counts, SOURCE_COUNT_COUNT), "errors",
		report_tally_json(r->errors, SOURCE_ERRORS_MAX), "suites",
		report_tally_json(r->suites, TALLY_SUITES_MAX), "mails_per_s", per_second(r, SOURCE_SENT),
		"bytes_per_s", per_second(r, SOURCE_BYTES), "latency",
		report_latencies_json(phases, r->phases, SOURCE_PHASE_COUNT)));
}

void source_result_progress(const struct source_result *r, uint64_t messages, uint64_t now_ns, int is_terminal)
{
	const uint64_t *n = r->counts;
	double s = (double)(now_ns - r->begin_ns) / 1e9;
	fprintf(stderr,
		"%s%5.0f s  %" PRIu64 " of %" PRIu64 " mails  %.0f/s  %" PRIu64 " failed  %" PRIu64 " connections%s",
		is_terminal ? "\r\033[K" : "", s, n[SOURCE_SENT], messages, s > 0 ? (double)n[SOURCE_SENT] / s : 0,
		n[SOURCE_FAILED], n[SOURCE_CONNECTED], is_terminal ? "" : "\n");
}
