/* worker.c: the loop and its parts: mailbox (mailbox.c), turn-end list (prepare), deadline wheel (timer).
 *
 * The turn-end list runs in uv_prepare, after timers and before the loop sleeps. An entry that is linked during a
 * pass runs in the next pass. After a few passes, an idle handle keeps the loop from sleeping instead. So a stream
 * whose peer takes everything at once cannot keep the others from being read.
 */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "net/loop/mailbox.h"
#include "net/loop/wheel.h"
#include "net/loop/worker.h"
#include "net/points/fault.h"
#include "net/report/log.h"
#include "proto/error.h"

#define TURN_END_PASSES  4u
#define BUSY_INTERVAL_NS UINT64_C(1000000000)
#define NS_PER_MS        1000000u

struct busy {
	uint64_t wall_ns, cpu_ns;
	unsigned permille;
};

struct worker {
	uv_loop_t loop;
	uv_prepare_t prepare;
	uv_idle_t idle; /* runs while the turn-end list is not empty before the loop would sleep */
	uv_timer_t wheel_timer;
	struct mailbox mailbox;
	LIST_HEAD(, turn_end) turn_ends; /* newest first */
	struct wheel wheel;
	uint64_t wheel_wakes_ms; /* WHEEL_NEVER: timer stopped */
	struct buffers buffers;
	uint8_t *read_buffer;
	uint8_t *own_read_buffer; /* NULL: it reads into memory of its user */
	struct busy busy;
	uint32_t turn;
	unsigned open_handles; /* of the objects of net/, without the worker's own */
	_Atomic int stop_asked;
	pthread_t thread;
	enum { WORKER_IN_CALLER, WORKER_IN_THREAD } runs;
	int (*start)(struct worker *w, void *arg);
	void *start_arg;
	int start_result;
	uv_sem_t started;
	unsigned index;
	char name[32];
};

/* Turn ends */

void worker_at_turn_end(struct worker *w, struct turn_end *t)
{
	if (!t->in.le_prev)
		LIST_INSERT_HEAD(&w->turn_ends, t, in);
}

void turn_end_cancel(struct turn_end *t)
{
	if (!t->in.le_prev)
		return;
	LIST_REMOVE(t, in);
	t->in.le_prev = NULL;
}

static void worker_run_turn_ends(struct worker *w)
{
	LIST_HEAD(, turn_end) oldest_first = LIST_HEAD_INITIALIZER(oldest_first);
	struct turn_end *t;

	while ((t = LIST_FIRST(&w->turn_ends))) {
		LIST_REMOVE(t, in);
		LIST_INSERT_HEAD(&oldest_first, t, in);
	}
	while ((t = LIST_FIRST(&oldest_first))) {
		turn_end_cancel(t);
		t->fn(t);
	}
}

static void on_idle(uv_idle_t *idle)
{
}

static void on_prepare(uv_prepare_t *prepare)
{
	struct worker *w = prepare->data;

	for (unsigned pass = 0; !LIST_EMPTY(&w->turn_ends) && pass < TURN_END_PASSES; pass++)
		worker_run_turn_ends(w);
	if (LIST_EMPTY(&w->turn_ends))
		uv_idle_stop(&w->idle);
	else
		uv_idle_start(&w->idle, on_idle);
	w->turn++;
}

/* Mail */

int worker_post(struct worker *w, void (*fn)(struct worker *w, void *arg), void *arg)
{
	return mailbox_post(&w->mailbox, fn, arg);
}

static bool worker_may_end(const struct worker *w)
{
	return atomic_load(&w->stop_asked) && w->open_handles == 0;
}

static void on_mail(uv_async_t *async)
{
	struct worker *w = async->data;

	mailbox_empty(&w->mailbox, w);
	if (worker_may_end(w))
		uv_stop(&w->loop);
}

/* Handles */

void worker_hold(struct worker *w)
{
	w->open_handles++;
}

void worker_release(struct worker *w)
{
	assert(w->open_handles > 0);
	w->open_handles--;
	if (worker_may_end(w))
		uv_stop(&w->loop);
}

/* Deadlines */

static void on_wheel_timer(uv_timer_t *timer);

/* The wheel may have to turn earlier than the loop would wake. */
static void worker_wake_for_wheel(struct worker *w)
{
	uint64_t next_ms = wheel_next_ms(&w->wheel), now_ms = uv_now(&w->loop);

	if (next_ms >= w->wheel_wakes_ms)
		return;
	w->wheel_wakes_ms = next_ms;
	uv_timer_start(&w->wheel_timer, on_wheel_timer, next_ms > now_ms ? next_ms - now_ms : 0, 0);
}

static void on_wheel_timer(uv_timer_t *timer)
{
	struct worker *w = timer->data;

	w->wheel_wakes_ms = WHEEL_NEVER;
	wheel_advance(&w->wheel, uv_now(&w->loop));
	worker_wake_for_wheel(w);
}

void deadline_set(struct worker *w, struct deadline *d, uint64_t in_ms)
{
	wheel_set(&w->wheel, d, uv_now(&w->loop), in_ms);
	worker_wake_for_wheel(w);
}

void deadline_set_in_full(struct worker *w, struct deadline *d, uint64_t in_ms)
{
	uint64_t next_ms = uv_hrtime() / NS_PER_MS + 1; /* both clocks are CLOCK_MONOTONIC */

	deadline_set(w, d, next_ms - uv_now(&w->loop) + in_ms);
}

/* Life */

static int worker_init_loop(struct worker *w)
{
	int r = uv_loop_init(&w->loop);
	if (r < 0)
		return r;
	r = mailbox_init(&w->mailbox, &w->loop, on_mail, w);
	if (r < 0) {
		uv_loop_close(&w->loop);
		return r;
	}
	uv_prepare_init(&w->loop, &w->prepare);
	w->prepare.data = w;
	uv_prepare_start(&w->prepare, on_prepare);
	uv_idle_init(&w->loop, &w->idle);
	uv_timer_init(&w->loop, &w->wheel_timer);
	w->wheel_timer.data = w;
	return 0;
}

struct worker *worker_create(unsigned index, const char *name)
{
	struct worker *w = calloc(1, sizeof *w);
	uint8_t *read_buffer = malloc(WORKER_READ_BUFFER_LEN);
	int r = w && read_buffer ? worker_init_loop(w) : UV_ENOMEM;

	if (r < 0) {
		log_event(LOG_ERROR, NULL, "worker not created", "worker=%s cause=%s", name, uv_strerror(r));
		free(read_buffer);
		free(w);
		return NULL;
	}
	signal(SIGPIPE, SIG_IGN); /* libuv writes with write(2) */
	w->read_buffer = w->own_read_buffer = read_buffer;
	wheel_init(&w->wheel, uv_now(&w->loop));
	w->wheel_wakes_ms = WHEEL_NEVER;
	w->turn = 1;
	w->index = index;
	snprintf(w->name, sizeof w->name, "%s", name);
	return w;
}

int worker_run(struct worker *w)
{
	int r = 0;

	do {
		while (!worker_may_end(w))
			r = uv_run(&w->loop, UV_RUN_DEFAULT);
		mailbox_empty(&w->mailbox, w);
	} while (!worker_may_end(w) || !mailbox_end(&w->mailbox));
	return r < 0 ? r : 0;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	char thread_name[16];

	snprintf(thread_name, sizeof thread_name, "%.15s", w->name);
	pthread_setname_np(pthread_self(), thread_name);
	w->start_result = w->start ? w->start(w, w->start_arg) : 0;
	if (w->start_result)
		atomic_store(&w->stop_asked, 1);
	uv_sem_post(&w->started);
	worker_run(w);
	return NULL;
}

int worker_begin(struct worker *w, int (*start)(struct worker *w, void *arg), void *arg)
{
	sigset_t all, before;

	assert(w->runs == WORKER_IN_CALLER);
	w->start = start;
	w->start_arg = arg;
	if (uv_sem_init(&w->started, 0) < 0)
		return CSSL_E_SYSTEM;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int r = pthread_create(&w->thread, NULL, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		w->runs = WORKER_IN_THREAD;
	else
		uv_sem_destroy(&w->started);
	return r ? CSSL_E_SYSTEM : 0;
}

int worker_await(struct worker *w)
{
	uv_sem_wait(&w->started);
	uv_sem_destroy(&w->started);
	return w->start_result;
}

int worker_start(struct worker *w, int (*start)(struct worker *w, void *arg), void *arg)
{
	int r = worker_begin(w, start, arg);

	return r < 0 ? r : worker_await(w);
}

void worker_stop(struct worker *w)
{
	atomic_store(&w->stop_asked, 1);
	mailbox_wake(&w->mailbox);
}

void worker_destroy(struct worker *w)
{
	if (!w)
		return;
	if (w->runs == WORKER_IN_THREAD)
		pthread_join(w->thread, NULL);
	/* If the worker never ran, closing and messages are still under way. A few turns end both. */
	for (unsigned turns = 0; turns < 4; turns++)
		uv_run(&w->loop, UV_RUN_NOWAIT);
	assert(w->open_handles == 0);
	mailbox_close(&w->mailbox);
	uv_close((uv_handle_t *)&w->prepare, NULL);
	uv_close((uv_handle_t *)&w->idle, NULL);
	uv_close((uv_handle_t *)&w->wheel_timer, NULL);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	int r = uv_loop_close(&w->loop);
	assert(r == 0);
	buffers_clear(&w->buffers);
	free(w->own_read_buffer);
	free(w);
}

/* Queries */

uv_loop_t *worker_loop(struct worker *w)
{
	return &w->loop;
}

unsigned worker_index(const struct worker *w)
{
	return w->index;
}

const char *worker_name(const struct worker *w)
{
	return w->name;
}

uint32_t worker_turn(const struct worker *w)
{
	return w->turn;
}

void worker_read_into(struct worker *w, uint8_t *buffer)
{
	free(w->own_read_buffer);
	w->own_read_buffer = NULL;
	w->read_buffer = buffer;
}

uint8_t *worker_read_buffer(struct worker *w)
{
	return w->read_buffer;
}

struct buffers *worker_buffers(struct worker *w)
{
	return &w->buffers;
}

uint64_t worker_now_ms(const struct worker *w)
{
	return uv_now(&w->loop);
}

void worker_refresh_now(struct worker *w)
{
	uv_update_time(&w->loop);
}

/* A negative offset wraps around, which gives the right result. */
static uint64_t clock_offset_s(void)
{
	uint64_t offset_s = 0;

	return fault_at("clock", NULL, &offset_s) == FAULT_OFFSET ? offset_s : 0;
}

uint64_t worker_wall_s(void)
{
	return (uint64_t)time(NULL) + clock_offset_s();
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

int64_t worker_wall_ms(void)
{
	return (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000 + 1000 * clock_offset_s());
}

unsigned worker_busy_permille(struct worker *w)
{
	uint64_t wall_ns = clock_ns(CLOCK_MONOTONIC), cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct busy *b = &w->busy;

	if (wall_ns - b->wall_ns < BUSY_INTERVAL_NS)
		return b->permille;
	if (b->wall_ns)
		b->permille = (unsigned)((cpu_ns - b->cpu_ns) * 1000 / (wall_ns - b->wall_ns));
	b->wall_ns = wall_ns;
	b->cpu_ns = cpu_ns;
	return b->permille;
}
