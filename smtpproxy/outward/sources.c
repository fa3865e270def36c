/* sources.c: every source has as many places in a circle as its weight. */
#include "smtpproxy/outward/sources.h"

static uint32_t weight_of(const struct smtpproxy_source *s, sa_family_t family)
{
	return s->address.ss_family == family ? s->weight : 0;
}

const struct smtpproxy_source *sources_pick(const struct smtpproxy_outward *outward, sa_family_t family, uint32_t nth)
{
	uint32_t all = 0;
	for (size_t i = 0; i < outward->source_count; i++)
		all += weight_of(&outward->sources[i], family);
	if (all == 0)
		return NULL;
	uint32_t place = nth % all;
	size_t i = 0;
	while (place >= weight_of(&outward->sources[i], family))
		place -= weight_of(&outward->sources[i++], family);
	return &outward->sources[i];
}
