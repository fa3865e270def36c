/* gather.c: parts travel through the workers' mailboxes and back. Only the main loop counts them. */
#include "ragent/control/operations/gather.h"

#include <stdlib.h>

#include "net/report/log.h"

static void gather_count(struct gather *g)
{
	if (--g->waiting > 0)
		return;
	g->done(g);
	free(g);
}

static void on_answer(struct worker *w, void *arg)
{
	struct gather_part *p = arg;

	gather_count(p->gather);
}

void gather_answer(struct gather_part *p)
{
	/* It fails only when the process ends or is out of memory: then the request waits until its client gives up. */
	if (worker_post(p->gather->main, on_answer, p) < 0)
		log_event(LOG_WARNING, NULL, "control answer lost", "worker=%u effect=\"the request gets a time-out\"",
			worker_index(p->rw->home.worker));
}

static void on_ask(struct worker *w, void *arg)
{
	struct gather_part *p = arg;

	p->gather->ask(p);
}

struct gather *gather_start(struct worker *main, struct ragent_worker *const *workers, unsigned count,
	void (*ask)(struct gather_part *p), void (*done)(struct gather *g), void *ctx)
{
	struct gather *g = calloc(1, sizeof *g + count * sizeof g->parts[0]);

	if (!g)
		return NULL;
	*g = (struct gather){
		.main = main, .ask = ask, .done = done, .ctx = ctx, .count = count, .waiting = count + 1
	};
	for (unsigned i = 0; i < count; i++) {
		g->parts[i] = (struct gather_part){ .gather = g, .rw = workers[i] };
		if (worker_post(workers[i]->home.worker, on_ask, &g->parts[i]) < 0)
			g->waiting--;
	}
	gather_count(g);
	return g;
}
