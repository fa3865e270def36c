/* source_result.c: both reports from the same rows. */
#include "bench/mail/source_result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/measure/report_parts.h"
#include "proto/error.h"

struct named {
	const char *key, *name;
};

static const struct named counts[] = {
#define X(name, key, sentence) [SOURCE_##name] = { key, sentence },
	SOURCE_COUNTS(X)
#undef X
};

static const struct named phases[] = {
#define X(name, key, sentence) [SOURCE_PHASE_##name] = { key, sentence },
	SOURCE_PHASES(X)
#undef X
};

static double seconds_of(const struct source_result *r)
{
	return r->end_ns > r->begin_ns ? (double)(r->end_ns - r->begin_ns) / 1e9 : 0;
}

static double per_second(const struct source_result *r, enum source_count count)
{
	double s = seconds_of(r);
	return s > 0 ? (double)r->counts[count] / s : 0;
}

void source_result_note(struct source_result *r, const char *where, const char *what)
{
	char text[LOAD_TEXT_MAX];
	int len = snprintf(text, sizeof text, "%s: %s", where, what);
	size_t cut = len < (int)sizeof text ? (size_t)len : sizeof text - 1;
	load_tally_row(r->errors, SOURCE_ERRORS_MAX, text, cut)->count++;
}

int source_result_has_failures(const struct source_result *r)
{
	return r->counts[SOURCE_FAILED] + r->counts[SOURCE_LOST] + r->counts[SOURCE_INJECTED] > 0;
}

void source_result_text(const struct source_result *r)
{
	printf("%-18s %10.2f\n", "seconds", seconds_of(r));
	for (unsigned i = 0; i < SOURCE_COUNT_COUNT; i++) {
		if (r->counts[i] > 0)
			printf("%-18s %10" PRIu64 "  %s\n", counts[i].key, r->counts[i], counts[i].name);
	}
	report_tally("errors", r->errors, SOURCE_ERRORS_MAX);
	report_tally("handshakes", r->suites, LOAD_SUITES_MAX);
	printf("\n%-18s %10.1f\n%-18s %10.2f\n", "mails/s", per_second(r, SOURCE_SENT), "MiB/s",
		per_second(r, SOURCE_BYTES) / (1 << 20));
	report_histogram_head();
	for (unsigned i = 0; i < SOURCE_PHASE_COUNT; i++)
		report_histogram(phases[i].name, &r->phases[i]);
}

int source_result_json(const struct source_result *r)
{
	json_t *numbers = json_object(), *latency = json_object();
	for (unsigned i = 0; i < SOURCE_COUNT_COUNT; i++)
		json_object_set_new(numbers, counts[i].key, json_integer((json_int_t)r->counts[i]));
	for (unsigned i = 0; i < SOURCE_PHASE_COUNT; i++) {
		if (r->phases[i].count > 0)
			json_object_set_new(latency, phases[i].key, report_histogram_json(&r->phases[i]));
	}
	json_t *out = json_pack("{s:f, s:o, s:o, s:o, s:f, s:f, s:o}", "seconds", seconds_of(r), "counts", numbers,
		"errors", report_tally_json(r->errors, SOURCE_ERRORS_MAX), "suites",
		report_tally_json(r->suites, LOAD_SUITES_MAX), "mails_per_s", per_second(r, SOURCE_SENT), "bytes_per_s",
		per_second(r, SOURCE_BYTES), "latency", latency);
	if (!out)
		return CSSL_E_NO_MEMORY;
	json_dumpf(out, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(out);
	return 0;
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
