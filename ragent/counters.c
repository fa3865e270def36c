/* counters.c: the table of counters as rows. */
#include "ragent/counters.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>

static const char *const names[] = {
#define X(name, kind, help) #name,
	RAGENT_COUNTERS(X)
#undef X
};

static const char *const reasons[] = {
#define X(name, text) #name,
	END_REASONS(X)
#undef X
};

#define ROWS           (sizeof names / sizeof names[0])
#define ENDED_NAME_MAX 40u

static char ended_names[END_REASON_COUNT][ENDED_NAME_MAX];

static void make_ended_names(void)
{
	for (unsigned i = 0; i < END_REASON_COUNT; i++) {
		snprintf(ended_names[i], ENDED_NAME_MAX, "ended_%s", reasons[i]);
		for (char *p = ended_names[i]; *p; p++)
			*p = (char)tolower((unsigned char)*p);
	}
}

size_t ragent_counter_count(void)
{
	return ROWS + END_REASON_COUNT;
}

const char *ragent_counter_name(size_t index)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (index < ROWS)
		return names[index];
	pthread_once(&once, make_ended_names);
	return ended_names[index - ROWS];
}

uint64_t ragent_counter_value(const struct ragent_counters *c, size_t index)
{
	const counter *first = (const counter *)c;

	_Static_assert(sizeof(struct ragent_counters) == (ROWS + END_REASON_COUNT) * sizeof(counter), "only counters");
	return counter_get(first + index);
}
