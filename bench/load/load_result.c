/* load_result.c: adding up. */
#include "bench/load/load_result.h"

void load_result_add(void *total, const void *result)
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

int load_result_has_failures(const struct load_result *r)
{
	static const enum load_count failures[] = { LOAD_HANDSHAKE_FAILED, LOAD_OTHER_STATUS, LOAD_WRONG_LENGTH,
		LOAD_WRONG_BYTES, LOAD_MALFORMED, LOAD_CUT, LOAD_UNANSWERED, LOAD_TIMEOUTS, LOAD_ALERTS };

	for (unsigned i = 0; i < sizeof failures / sizeof failures[0]; i++) {
		if (r->counts[failures[i]] > 0)
			return 1;
	}
	return r->counts[LOAD_CONNECTED] < r->counts[LOAD_CONNECTIONS];
}
