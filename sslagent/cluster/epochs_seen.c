/* epochs_seen.c: connection ids are random, so their bytes are the hash. One lock for each run of neighbouring sets. */
#include "sslagent/cluster/epochs_seen.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/counters.h"

#define PLACES 8u
#define LOCKS  64u

struct place {
	struct connection_id id;
	int64_t at_ms;
	uint16_t epoch; /* 0: none was seen */
	uint8_t used;   /* enum use */
};

enum use { UNUSED, ALIVE, ENDED };

struct set {
	struct place places[PLACES];
};

struct epochs_seen {
	size_t mask;
	uint32_t keep_ms;
	pthread_mutex_t locks[LOCKS];
	struct set sets[];
};

struct epochs_seen *epochs_seen_create(size_t entries, uint32_t keep_ms)
{
	struct epochs_seen *e;
	size_t sets = 1;

	while (sets * PLACES < entries)
		sets *= 2;
	e = calloc(1, sizeof(*e) + sets * sizeof(struct set)); /* takes memory only as it fills */
	if (!e)
		return NULL;
	e->mask = sets - 1;
	e->keep_ms = keep_ms;
	for (unsigned i = 0; i < LOCKS; i++)
		pthread_mutex_init(&e->locks[i], NULL);
	return e;
}

void epochs_seen_destroy(struct epochs_seen *e)
{
	if (!e)
		return;
	for (unsigned i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&e->locks[i]);
	free(e);
}

static struct set *set_of(struct epochs_seen *e, const struct connection_id *id, pthread_mutex_t **lock)
{
	uint64_t hash;

	memcpy(&hash, id->bytes, sizeof(hash));
	*lock = &e->locks[(hash & e->mask) % LOCKS];
	return &e->sets[hash & e->mask];
}

static struct place *find(struct set *s, const struct connection_id *id)
{
	for (unsigned i = 0; i < PLACES; i++)
		if (s->places[i].used != UNUSED && memcmp(&s->places[i].id, id, sizeof(*id)) == 0)
			return &s->places[i];
	return NULL;
}

/* A free place, or that of the one nobody spoke of for longest. */
static struct place *take(struct epochs_seen *e, struct set *s, const struct connection_id *id, int64_t now_ms)
{
	struct place *place = &s->places[0];

	for (unsigned i = 0; i < PLACES && place->used != UNUSED; i++)
		if (s->places[i].used == UNUSED || s->places[i].at_ms < place->at_ms)
			place = &s->places[i];
	if (place->used != UNUSED && now_ms - place->at_ms < e->keep_ms)
		count(COUNT_EPOCHS_FORGOTTEN_EARLY);
	*place = (struct place){ .id = *id, .used = ALIVE };
	return place;
}

static struct place *find_or_take(struct epochs_seen *e, struct set *s, const struct connection_id *id, int64_t now_ms)
{
	struct place *place = find(s, id);

	if (!place)
		place = take(e, s, id, now_ms);
	place->at_ms = now_ms;
	return place;
}

static void raise_to(struct place *place, uint16_t epoch)
{
	place->epoch = epoch;
	place->used = ALIVE;
}

int epochs_seen_claim(struct epochs_seen *e, const struct connection_id *id, uint16_t epoch, int64_t now_ms)
{
	pthread_mutex_t *lock;
	struct set *s = set_of(e, id, &lock);
	struct place *place;
	int result = 0;

	pthread_mutex_lock(lock);
	place = find_or_take(e, s, id, now_ms);
	if (epoch <= place->epoch)
		result = CSSL_E_REPLAY;
	else
		raise_to(place, epoch);
	pthread_mutex_unlock(lock);
	if (result)
		count(COUNT_EPOCHS_REFUSED);
	return result;
}

void epochs_seen_note(struct epochs_seen *e, const struct connection_id *id, uint16_t epoch, int64_t now_ms)
{
	pthread_mutex_t *lock;
	struct set *s = set_of(e, id, &lock);
	struct place *place;

	pthread_mutex_lock(lock);
	place = find_or_take(e, s, id, now_ms);
	if (epoch > place->epoch)
		raise_to(place, epoch);
	pthread_mutex_unlock(lock);
}

void epochs_seen_end(struct epochs_seen *e, const struct connection_id *id, int64_t now_ms)
{
	pthread_mutex_t *lock;
	struct set *s = set_of(e, id, &lock);

	pthread_mutex_lock(lock);
	find_or_take(e, s, id, now_ms)->used = ENDED;
	pthread_mutex_unlock(lock);
}

int epochs_seen_ended(struct epochs_seen *e, const struct connection_id *id)
{
	pthread_mutex_t *lock;
	struct set *s = set_of(e, id, &lock);
	struct place *place;
	int ended;

	pthread_mutex_lock(lock);
	place = find(s, id);
	ended = place && place->used == ENDED;
	pthread_mutex_unlock(lock);
	return ended;
}
