/* signals.h: signals as callbacks on a worker's loop; SIGPIPE is ignored. */
#pragma once

struct worker;
struct signals;
struct signals *signals_create(
	struct worker *w, const int *signums, unsigned count, void (*fn)(void *ctx, int signum), void *ctx);
/* From then on the process ignores these signals: it is ending as it was asked to, and one more request must not cut
 * its last words off. */
void signals_destroy(struct signals *s);
