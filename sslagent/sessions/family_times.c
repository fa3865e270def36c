/* family_times.c: two places for each hash value; the older entry gives way. */
#include "sslagent/sessions/family_times.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SETS   2048u
#define PLACES 2u

struct family_times {
	pthread_mutex_t lock;
	struct {
		uint8_t family_id[FAMILY_ID_LEN];
		int64_t made_ms;
	} sets[SETS][PLACES]; /* the last noted first */
};

struct family_times *family_times_create(void)
{
	struct family_times *f = calloc(1, sizeof *f);

	if (f)
		pthread_mutex_init(&f->lock, NULL);
	return f;
}

void family_times_destroy(struct family_times *f)
{
	if (!f)
		return;
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* Family ids are random. */
static size_t set_of(const uint8_t *family_id)
{
	return (size_t)(family_id[0] << 8 | family_id[1]) % SETS;
}

void family_times_note(struct family_times *f, const uint8_t family_id[static FAMILY_ID_LEN], int64_t made_ms)
{
	size_t set = set_of(family_id);

	pthread_mutex_lock(&f->lock);
	if (memcmp(f->sets[set][0].family_id, family_id, FAMILY_ID_LEN) != 0)
		f->sets[set][1] = f->sets[set][0];
	memcpy(f->sets[set][0].family_id, family_id, FAMILY_ID_LEN);
	f->sets[set][0].made_ms = made_ms;
	pthread_mutex_unlock(&f->lock);
}

int family_times_find(struct family_times *f, const uint8_t family_id[static FAMILY_ID_LEN], int64_t *made_ms)
{
	size_t set = set_of(family_id);
	int found = 0;

	pthread_mutex_lock(&f->lock);
	for (unsigned place = 0; place < PLACES && !found; place++) {
		found = memcmp(f->sets[set][place].family_id, family_id, FAMILY_ID_LEN) == 0;
		if (found)
			*made_ms = f->sets[set][place].made_ms;
	}
	pthread_mutex_unlock(&f->lock);
	return found;
}

int64_t family_times_made(
	struct family_times *f, const uint8_t family_id[static FAMILY_ID_LEN], uint32_t age_s, int64_t now_ms)
{
	/* Age 0: the full handshake was just made. Any other age may be a second too low. */
	int64_t made_ms = age_s > 0 ? now_ms - ((int64_t)age_s + 1) * 1000 : now_ms;

	family_times_find(f, family_id, &made_ms);
	return made_ms;
}
