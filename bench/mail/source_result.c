/* source_result.c: both reports from the same rows. */
#include "bench/mail/source_result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/measure/exact.h"
#include "proto/error.h"

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

/* The receiver of that address, or a free place; the last one if there is neither. */
static struct source_receiver *receiver_of(struct source_result *r, const char *address)
{
	unsigned i = 0;
	while (i < SOURCE_TARGETS_MAX - 1 && r->receivers[i].address[0] &&
		strcmp(r->receivers[i].address, address) != 0)
		i++;
	if (!r->receivers[i].address[0])
		snprintf(r->receivers[i].address, sizeof r->receivers[i].address, "%s", address);
	return &r->receivers[i];
}

void source_result_add(struct source_result *sum, const struct source_result *r)
{
	for (unsigned i = 0; i < SOURCE_COUNT_COUNT; i++)
		sum->counts[i] += r->counts[i];
	tally_add(sum->errors, r->errors, SOURCE_ERRORS_MAX);
	tally_add(sum->suites, r->suites, TALLY_SUITES_MAX);
	for (unsigned i = 0; i < SOURCE_TARGETS_MAX && r->receivers[i].address[0]; i++)
		reply_codes_add(&receiver_of(sum, r->receivers[i].address)->replies, &r->receivers[i].replies);
	if (r->begin_ns && (!sum->begin_ns || r->begin_ns < sum->begin_ns))
		sum->begin_ns = r->begin_ns;
	if (r->end_ns > sum->end_ns)
		sum->end_ns = r->end_ns;
	sum->epoch_ns = r->epoch_ns;
	for (unsigned i = 0; i < SOURCE_PHASE_COUNT; i++)
		histogram_add(&sum->phases[i], &r->phases[i]);
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
	for (unsigned i = 0; i < SOURCE_TARGETS_MAX && r->receivers[i].address[0]; i++) {
		if (r->receivers[1].address[0])
			printf("%s\n", r->receivers[i].address);
		reply_codes_text("replies", &r->receivers[i].replies);
	}
	printf("\n%-18s %10.1f\n%-18s %10.2f\n", "mails/s", per_second(r, SOURCE_SENT), "MiB/s",
		per_second(r, SOURCE_BYTES) / (1 << 20));
	report_latencies(phases, r->phases, SOURCE_PHASE_COUNT);
}

static json_t *replies_json(const struct source_result *r)
{
	struct reply_codes all = { 0 };
	for (unsigned i = 0; i < SOURCE_TARGETS_MAX; i++)
		reply_codes_add(&all, &r->receivers[i].replies);
	return reply_codes_json(&all);
}

static json_t *receivers_json(const struct source_result *r)
{
	json_t *out = json_object();
	for (unsigned i = 0; i < SOURCE_TARGETS_MAX && r->receivers[i].address[0]; i++)
		json_object_set_new(out, r->receivers[i].address, reply_codes_json(&r->receivers[i].replies));
	return out;
}

static json_t *exact_json(const struct source_result *r)
{
	return json_pack("{s:I, s:I, s:o}", "begin_ns", exact_wall_ns(r->epoch_ns, r->begin_ns), "end_ns",
		exact_wall_ns(r->epoch_ns, r->end_ns), "latency",
		exact_histograms_json(phases, r->phases, SOURCE_PHASE_COUNT));
}

int source_result_json(const struct source_result *r)
{
	return report_print_json(json_pack("{s:s, s:f, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:o, s:o}", "load",
		"smtp-source", "seconds", seconds_of(r), "replies", replies_json(r), "receivers", receivers_json(r),
		"counts", report_counts_json(counts, r->counts, SOURCE_COUNT_COUNT), "errors",
		report_tally_json(r->errors, SOURCE_ERRORS_MAX), "suites",
		report_tally_json(r->suites, TALLY_SUITES_MAX), "mails_per_s", per_second(r, SOURCE_SENT),
		"bytes_per_s", per_second(r, SOURCE_BYTES), "latency",
		report_latencies_json(phases, r->phases, SOURCE_PHASE_COUNT), "exact", exact_json(r)));
}

static int read_receivers(const json_t *from, struct source_result *out)
{
	json_t *receivers = json_object_get(from, "receivers"), *replies;
	const char *address;

	json_object_foreach(receivers, address, replies)
	{
		if (reply_codes_read(replies, &receiver_of(out, address)->replies))
			return CSSL_E_RANGE;
	}
	return json_is_object(receivers) ? 0 : CSSL_E_RANGE;
}

int source_result_read(const json_t *from, struct source_result *out)
{
	const json_t *exact = json_object_get(from, "exact");

	return exact_counts(from, "counts", counts, out->counts, SOURCE_COUNT_COUNT) ||
			       exact_tally(from, "errors", out->errors, SOURCE_ERRORS_MAX) ||
			       exact_tally(from, "suites", out->suites, TALLY_SUITES_MAX) ||
			       read_receivers(from, out) || exact_number(exact, "begin_ns", &out->begin_ns) ||
			       exact_number(exact, "end_ns", &out->end_ns) ||
			       exact_histograms(exact, "latency", phases, out->phases, SOURCE_PHASE_COUNT)
		       ? CSSL_E_RANGE
		       : 0;
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
