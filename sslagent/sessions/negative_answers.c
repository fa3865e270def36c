/* negative_answers.c: one place for each hash value. */
#include "sslagent/sessions/negative_answers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 4096u

struct negative_answers {
	pthread_mutex_t lock;
	int64_t keep_ms;
	struct {
		uint8_t id[SESSION_ID_LEN];
		int64_t until_ms;
	} places[PLACES];
};

struct negative_answers *negative_answers_create(int64_t keep_ms)
{
	struct negative_answers *n = calloc(1, sizeof *n);

	if (!n)
		return NULL;
	n->keep_ms = keep_ms;
	pthread_mutex_init(&n->lock, NULL);
	return n;
}

void negative_answers_destroy(struct negative_answers *n)
{
	if (!n)
		return;
	pthread_mutex_destroy(&n->lock);
	free(n);
}

/* The last bytes of an id are random. */
static size_t place_of(const uint8_t *id)
{
	return (size_t)(id[SESSION_ID_LEN - 2] << 8 | id[SESSION_ID_LEN - 1]) % PLACES;
}

void negative_answers_note(struct negative_answers *n, const uint8_t id[static SESSION_ID_LEN], int64_t now_ms)
{
	size_t place = place_of(id);

	pthread_mutex_lock(&n->lock);
	memcpy(n->places[place].id, id, SESSION_ID_LEN);
	n->places[place].until_ms = now_ms + n->keep_ms;
	pthread_mutex_unlock(&n->lock);
}

int negative_answers_has(struct negative_answers *n, const uint8_t id[static SESSION_ID_LEN], int64_t now_ms)
{
	size_t place = place_of(id);
	int has;

	pthread_mutex_lock(&n->lock);
	has = n->places[place].until_ms > now_ms && memcmp(n->places[place].id, id, SESSION_ID_LEN) == 0;
	pthread_mutex_unlock(&n->lock);
	return has;
}
