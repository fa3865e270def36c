/* interrupt.c: one flag. */
#include "csslctl/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t noted;

static void on_signal(int number)
{
	noted = 1;
}

void interrupt_watch(void)
{
	const struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

int interrupted(void)
{
	return noted;
}
