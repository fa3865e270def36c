/* generator.c: says which client does what next.
 *
 * Closed loop: a client that is free goes on at once, or after its pause. Open loop: requests are due by the schedule,
 * and each goes to the client that has been free for longest. When none is free the next one that becomes free takes
 * it, late, and the latency counts from the due time all the same: a server that stalls cannot hide the requests that
 * it kept from being made.
 */
#include "bench/load/generator.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/load/client.h"
#include "bench/load/due_timer.h"
#include "bench/load/processes.h"
#include "net/loop/signals.h"
#include "net/memory/container_of.h"

#define NS_PER_MS 1000000u
#define NS_PER_S  1000000000u

enum generator_state { GENERATOR_NEW, GENERATOR_RUNS, GENERATOR_STOPS, GENERATOR_DONE };

struct generator {
	struct client_host host;
	enum generator_state state;
	unsigned index;
	uint32_t client_count;
	struct client *clients;
	TAILQ_HEAD(, client) free; /* open loop: longest first */
	uint64_t connections_left; /* without a limit: UINT64_MAX */
	uint64_t due;              /* open loop: how many requests were given out */
	struct due_timer *due_timer;
	struct signals *signals;
	struct deadline start, end;
	uint64_t cpu_begin_ns, waiting_begin_ns;
};

/* CPU time of this process, from the kernel. */

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Time in which the process was ready to run but had no CPU: the second number of schedstat. 0 where the kernel does
 * not tell. */
static uint64_t waiting_ns(void)
{
	unsigned long long running = 0, waiting = 0;
	FILE *f = fopen("/proc/self/schedstat", "re");

	if (!f)
		return 0;
	if (fscanf(f, "%llu %llu", &running, &waiting) != 2)
		waiting = 0;
	fclose(f);
	return waiting;
}

static void note_cpu(struct generator *g)
{
	struct load_result *r = g->host.result;

	r->cpu_ns = cpu_ns() - g->cpu_begin_ns;
	r->waiting_ns = waiting_ns() - g->waiting_begin_ns;
	r->wall_ns = uv_hrtime() - r->times.begin_ns;
}

/* The end */

static void generator_finish(struct generator *g)
{
	g->state = GENERATOR_DONE;
	note_cpu(g);
	deadline_cancel(&g->start);
	deadline_cancel(&g->end);
	due_timer_destroy(g->due_timer);
	signals_destroy(g->signals);
	g->due_timer = NULL;
	g->signals = NULL;
	worker_stop(g->host.worker);
}

static void generator_retire(struct generator *g, struct client *c)
{
	client_retire(c);
	if (g->host.result->retired == g->client_count)
		generator_finish(g);
}

/* Begin no more work. Open requests may end. */
static void generator_stop(struct generator *g)
{
	if (g->state != GENERATOR_RUNS)
		return;
	g->state = GENERATOR_STOPS;
	TAILQ_INIT(&g->free);
	for (uint32_t i = 0; i < g->client_count; i++) {
		struct client *c = &g->clients[i];
		if (c->state == CLIENT_READY || c->state == CLIENT_RESTING)
			client_close(c);
		else if (c->state == CLIENT_AWAY)
			generator_retire(g, c);
	}
}

static void on_generator_signal(void *ctx, int signum)
{
	struct generator *g = ctx;

	if (g->state == GENERATOR_RUNS) {
		generator_stop(g);
		return;
	}
	for (uint32_t i = 0; i < g->client_count; i++)
		client_abort(&g->clients[i]);
}

static void on_generator_time_over(struct deadline *d)
{
	generator_stop(container_of(d, struct generator, end));
}

/* Work */

/* May this client begin a connection? Whole cycles of the mix are given out, so that the counts are exact. */
static bool take_connection(struct generator *g, struct client *c)
{
	if (c->quota == 0) {
		c->quota = mix_cycle(&g->host.options->mix);
		if (c->quota > g->connections_left)
			c->quota = g->connections_left;
		if (g->connections_left != UINT64_MAX)
			g->connections_left -= c->quota;
	}
	if (c->quota == 0)
		return false;
	c->quota--;
	return true;
}

static bool may_go(struct generator *g, struct client *c)
{
	return g->state == GENERATOR_RUNS && (c->state == CLIENT_READY || take_connection(g, c));
}

static uint64_t due_ns(const struct generator *g)
{
	const struct load_options *o = g->host.options;

	return g->host.result->times.begin_ns + schedule_due_ns(&o->schedule, g->due * o->processes + g->index);
}

static void set_due_timer(struct generator *g)
{
	if (!TAILQ_EMPTY(&g->free))
		due_timer_set(g->due_timer, due_ns(g));
}

static void list_free(struct generator *g, struct client *c)
{
	int was_empty = TAILQ_EMPTY(&g->free);

	if (c->listed == CLIENT_LISTED) /* its connection ended while it waited */
		return;
	c->listed = CLIENT_LISTED;
	TAILQ_INSERT_TAIL(&g->free, c, free);
	if (was_empty)
		set_due_timer(g);
}

/* The client that has been free for longest, or NULL. */
static struct client *unlist_free(struct generator *g)
{
	struct client *c;

	while ((c = TAILQ_FIRST(&g->free))) {
		TAILQ_REMOVE(&g->free, c, free);
		c->listed = CLIENT_UNLISTED;
		if (c->state == CLIENT_AWAY || c->state == CLIENT_READY)
			return c;
	}
	return NULL;
}

static void on_generator_due(void *ctx)
{
	struct generator *g = ctx;
	struct client *c;
	uint64_t at;

	while (g->state == GENERATOR_RUNS && (at = due_ns(g)) <= uv_hrtime() && (c = unlist_free(g))) {
		g->due++;
		histogram_record(&g->host.result->phases[LOAD_PHASE_LATE], uv_hrtime() - at);
		client_go(c, at);
	}
	if (g->state == GENERATOR_RUNS)
		set_due_timer(g);
}

/* Open loop: its next request is due already, or it waits among the free clients. */
static void go_when_due(struct generator *g, struct client *c)
{
	uint64_t at = due_ns(g);

	if (at > uv_hrtime()) {
		list_free(g, c);
		return;
	}
	g->due++;
	client_go(c, at);
}

static void generator_client_go_on(struct client_host *host, struct client *c)
{
	struct generator *g = container_of(host, struct generator, host);

	if (may_go(g, c)) {
		if (host->options->schedule.rate > 0)
			go_when_due(g, c);
		else
			client_go(c, uv_hrtime());
	} else if (c->state == CLIENT_READY) {
		client_close(c);
	} else {
		generator_retire(g, c);
	}
}

static void on_generator_client_free(struct client_host *host, struct client *c)
{
	if (host->options->think_ms > 0 && c->state == CLIENT_READY)
		client_pause(c, host->options->think_ms);
	else
		generator_client_go_on(host, c);
}

/* The start */

static void start_open(struct generator *g)
{
	for (uint32_t i = 0; i < g->client_count; i++)
		generator_client_go_on(&g->host, &g->clients[i]);
}

static void start_closed(struct generator *g)
{
	const struct load_options *o = g->host.options;

	for (uint32_t i = 0; i < g->client_count; i++) {
		struct client *c = &g->clients[i];
		uint64_t in_ns = schedule_start_ns(o->schedule.ramp_ns, c->number, o->clients);
		if (in_ns > 0)
			client_pause(c, in_ns / NS_PER_MS);
		else
			generator_client_go_on(&g->host, c);
	}
}

static void on_start(struct deadline *d)
{
	struct generator *g = container_of(d, struct generator, start);
	const struct load_options *o = g->host.options;

	g->state = GENERATOR_RUNS;
	g->host.result->times.begin_ns = uv_hrtime();
	g->cpu_begin_ns = cpu_ns();
	g->waiting_begin_ns = waiting_ns();
	if (o->duration_ms > 0)
		deadline_set(g->host.worker, &g->end, o->duration_ms);
	if (o->schedule.rate > 0)
		start_open(g);
	else
		start_closed(g);
}

static int prepare_due_timer(struct generator *g)
{
	if (g->host.options->schedule.rate <= 0)
		return 0;
	g->due_timer = due_timer_create(g->host.worker, on_generator_due, g);
	return g->due_timer ? 0 : -1;
}

static void prepare_client(struct generator *g, uint32_t i)
{
	const struct load_options *o = g->host.options;
	uint64_t number = g->index + (uint64_t)i * o->processes;

	client_init(&g->clients[i], &g->host, number);
	if (o->parts == LOAD_PARTS_EQUAL)
		g->clients[i].quota = schedule_share(o->connections, number, o->clients);
}

static int generator_prepare(struct generator *g)
{
	static const int stop_signals[] = { SIGTERM, SIGINT };
	const struct load_options *o = g->host.options;

	if (client_tls_open(&g->host.tls, &o->tls))
		return -1;
	g->clients = calloc(g->client_count, sizeof *g->clients);
	g->host.worker = worker_create(g->index, "generator");
	if (!g->clients || !g->host.worker || prepare_due_timer(g))
		return -1;
	g->signals = signals_create(g->host.worker, stop_signals, 2, on_generator_signal, g);
	if (!g->signals)
		return -1;
	for (uint32_t i = 0; i < g->client_count; i++)
		prepare_client(g, i);
	return 0;
}

/* The number of connections of this process that its clients take one by one. */
static uint64_t connections_to_take(const struct load_options *o, unsigned index)
{
	if (o->parts == LOAD_PARTS_EQUAL)
		return 0;
	return o->connections > 0 ? schedule_share(o->connections, index, o->processes) : UINT64_MAX;
}

static void generator_destroy(struct generator *g)
{
	if (g->host.worker && g->state != GENERATOR_DONE) { /* it never ran: its handles have to be closed */
		generator_finish(g);
		worker_run(g->host.worker);
	}
	for (uint32_t i = 0; g->clients && i < g->client_count; i++)
		client_wipe(&g->clients[i]);
	worker_destroy(g->host.worker);
	client_tls_close(&g->host.tls);
	free(g->clients);
	free(g);
}

int generator_run(const void *options, unsigned index, void *result)
{
	const struct load_options *o = options;
	struct generator *g = calloc(1, sizeof *g);

	if (!g)
		return EXIT_FAILURE;
	g->index = index;
	g->client_count = (uint32_t)schedule_share(o->clients, index, o->processes);
	g->connections_left = connections_to_take(o, index);
	g->host.options = o;
	g->host.result = result;
	g->host.result->clients = g->client_count;
	g->host.on_free = on_generator_client_free;
	g->host.on_pause_end = generator_client_go_on;
	g->start.fn = on_start;
	g->end.fn = on_generator_time_over;
	TAILQ_INIT(&g->free);
	const int status = generator_prepare(g) ? EXIT_FAILURE : EXIT_SUCCESS;
	if (status == EXIT_SUCCESS) {
		processes_stand();
		deadline_set(g->host.worker, &g->start, 0);
		worker_run(g->host.worker);
	} else {
		fprintf(stderr, "https: generator %u cannot start\n", index);
	}
	generator_destroy(g);
	return status;
}
