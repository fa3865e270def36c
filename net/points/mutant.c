/* mutant.c: the variable is read once, because records ask. */
#include "net/points/mutant.h"

#ifdef CSSL_TEST_POINTS
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *chosen;

static void choose(void)
{
	const char *name = getenv("CSSL_MUTANT");

	chosen = name && name[0] ? name : NULL;
}

bool mutant(const char *name)
{
	pthread_once(&once, choose);
	return chosen && strcmp(chosen, name) == 0;
}
#endif
