/* rates.c: differences. */
#include "csslctl/rates.h"

static const json_t *rate_value_of(const json_t *counters, const char *agent, const char *counter)
{
	const json_t *set = agent ? json_object_get(json_object_get(counters, "agents"), agent)
				  : json_object_get(counters, "ragent");
	const json_t *value = json_object_get(set, counter);

	return json_is_integer(value) ? value : NULL;
}

double rate_of(const struct rates *r, const char *agent, const char *counter)
{
	const json_t *before = rate_value_of(r->before, agent, counter),
		     *after = rate_value_of(r->after, agent, counter);
	const json_int_t grown = json_integer_value(after) - json_integer_value(before);

	if (!before || !after || grown <= 0 || r->ms == 0)
		return 0;
	return (double)grown * 1000 / (double)r->ms;
}
