/* schedule.c: a rate that grows evenly to R within T has made R t^2 / 2T requests at time t, and R T / 2 at its end. */
#include "bench/load/schedule.h"

#include <math.h>
#include <stdlib.h>

#include "bench/command/option_table.h"
#include "proto/error.h"

#define NS_PER_S 1e9
#define MIX_MAX  1000000ul

uint64_t schedule_due_ns(const struct schedule *s, uint64_t number)
{
	double ramp_s = (double)s->ramp_ns / NS_PER_S, n = (double)number;
	double in_ramp = s->rate * ramp_s / 2;

	if (n < in_ramp)
		return (uint64_t)(sqrt(2 * ramp_s * n / s->rate) * NS_PER_S);
	return (uint64_t)((ramp_s + (n - in_ramp) / s->rate) * NS_PER_S);
}

uint64_t schedule_start_ns(uint64_t ramp_ns, uint64_t number, uint64_t clients)
{
	return (uint64_t)((double)ramp_ns * (double)number / (double)clients);
}

static int parse_part(const char *text, char **end, uint32_t *out)
{
	unsigned long n = strtoul(text, end, 10);

	*out = (uint32_t)n;
	return *text >= '0' && *text <= '9' && n <= MIX_MAX ? 0 : CSSL_E_RANGE;
}

int mix_parse(const char *text, struct mix *out)
{
	struct mix m;
	char *end;

	if (parse_part(text, &end, &m.full) || *end != ':' || parse_part(end + 1, &end, &m.resumed) || *end)
		return CSSL_E_RANGE;
	if (mix_cycle(&m) == 0)
		return CSSL_E_RANGE;
	*out = m;
	return 0;
}

int option_set_mix(void *options, const struct option_row *row, const char *value)
{
	return mix_parse(value, option_member(options, row));
}

uint32_t mix_cycle(const struct mix *m)
{
	return m->full + m->resumed;
}

bool mix_offers(const struct mix *m, uint64_t number)
{
	return number % mix_cycle(m) >= m->full;
}

uint64_t schedule_share(uint64_t total, uint64_t index, uint64_t count)
{
	return total / count + (index < total % count);
}
