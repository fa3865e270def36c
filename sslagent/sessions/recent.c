/* recent.c: two places for each hash value; the older entry gives way. */
#include "sslagent/sessions/recent.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SETS   2048u
#define PLACES 2u

struct place {
	uint8_t id[RECENT_ID_LEN];
	int64_t at_ms;
};

struct recent {
	pthread_mutex_t lock;
	struct place sets[SETS][PLACES]; /* the last noted first */
};

struct recent *recent_create(void)
{
	struct recent *r = calloc(1, sizeof *r);

	if (r)
		pthread_mutex_init(&r->lock, NULL);
	return r;
}

void recent_destroy(struct recent *r)
{
	if (r)
		pthread_mutex_destroy(&r->lock);
	free(r);
}

static struct place *recent_set_of(struct recent *r, const uint8_t *id)
{
	return r->sets[(id[0] << 8 | id[1]) % (int)SETS];
}

void recent_note(struct recent *r, const uint8_t id[static RECENT_ID_LEN], int64_t at_ms)
{
	struct place *set = recent_set_of(r, id);

	pthread_mutex_lock(&r->lock);
	if (memcmp(set[0].id, id, RECENT_ID_LEN) != 0)
		set[1] = set[0];
	memcpy(set[0].id, id, RECENT_ID_LEN);
	set[0].at_ms = at_ms;
	pthread_mutex_unlock(&r->lock);
}

bool recent_find(struct recent *r, const uint8_t id[static RECENT_ID_LEN], int64_t *at_ms)
{
	const struct place *set = recent_set_of(r, id);
	bool found = false;

	pthread_mutex_lock(&r->lock);
	for (unsigned place = 0; place < PLACES && !found; place++) {
		found = memcmp(set[place].id, id, RECENT_ID_LEN) == 0;
		if (found)
			*at_ms = set[place].at_ms;
	}
	pthread_mutex_unlock(&r->lock);
	return found;
}
