/* smtp_source.c: `cssl-bench smtp-source`: options, and a load in this process or in several. Each process gives mails
 * to sessions that are free, and connects one session at a time: many SYNs at once would fill the server's backlog, and
 * their repetition would be what is measured.
 *
 * Open loop: mails are due by the schedule, and each goes to the session that has been free for longest; when none is
 * free the next one takes it, late, and its latency counts from the due time all the same.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "bench/command/command.h"
#include "bench/load/due_timer.h"
#include "bench/load/processes.h"
#include "bench/mail/source_session.h"
#include "net/loop/signals.h"
#include "net/loop/timer.h"
#include "net/memory/container_of.h"
#include "net/process/descriptors.h"
#include "net/report/log.h"

#define NS_PER_MS   1000000u
#define PROGRESS_MS 1000u
#define GRACE_MS    5000u /* for open mails when the time is over */

enum load_state { LOAD_IS_NEW, LOAD_RUNS, LOAD_STOPS, LOAD_IS_DONE };
enum listed { LISTED_NOWHERE, LISTED_FREE, LISTED_TO_CONNECT };

TAILQ_HEAD(session_list, source_session);

struct source_load {
	struct source_host host;
	enum load_state state;
	unsigned index;         /* of the process */
	uint64_t session_count; /* its part of them */
	struct source_mail mail;
	struct source_session *sessions;
	struct session_list free, to_connect;
	uint64_t connecting, retired;
	uint64_t given; /* mails that were given to sessions */
	struct due_timer *due_timer;
	struct signals *signals;
	struct timer *progress;
	struct deadline start, end;
};

/* Lists */

static void session_list_add(struct session_list *all, struct source_session *s, enum listed where)
{
	if (s->listed != LISTED_NOWHERE)
		return;
	s->listed = (uint8_t)where;
	TAILQ_INSERT_TAIL(all, s, next);
}

static struct source_session *session_list_take(struct session_list *all)
{
	struct source_session *s = TAILQ_FIRST(all);
	if (s) {
		TAILQ_REMOVE(all, s, next);
		s->listed = LISTED_NOWHERE;
	}
	return s;
}

static void unlist_one(struct source_load *l, struct source_session *s)
{
	if (s->listed == LISTED_FREE)
		TAILQ_REMOVE(&l->free, s, next);
	else if (s->listed == LISTED_TO_CONNECT)
		TAILQ_REMOVE(&l->to_connect, s, next);
	s->listed = LISTED_NOWHERE;
}

/* The end */

static void source_load_finish(struct source_load *l)
{
	l->state = LOAD_IS_DONE;
	deadline_cancel(&l->start);
	deadline_cancel(&l->end);
	timer_stop(l->progress);
	due_timer_destroy(l->due_timer);
	signals_destroy(l->signals);
	l->progress = NULL;
	l->due_timer = NULL;
	l->signals = NULL;
	worker_stop(l->host.worker);
}

static void source_load_retire(struct source_load *l, struct source_session *s)
{
	unlist_one(l, s);
	source_session_retire(s);
	if (++l->retired == l->session_count)
		source_load_finish(l);
}

static void abort_all(struct source_load *l)
{
	for (uint64_t i = 0; i < l->session_count; i++)
		source_session_abort(&l->sessions[i]);
}

/* Begin no more mails. Open ones may end, within a time. */
static void source_load_stop(struct source_load *l)
{
	if (l->state != LOAD_RUNS)
		return;
	l->state = LOAD_STOPS;
	deadline_set(l->host.worker, &l->end, GRACE_MS);
	for (uint64_t i = 0; i < l->session_count; i++) {
		struct source_session *s = &l->sessions[i];
		if (s->state == SOURCE_IS_READY && !s->has_mail)
			source_session_quit(s);
		else if (s->state == SOURCE_IS_AWAY)
			source_load_retire(l, s);
	}
}

static void on_source_time_over(struct deadline *d)
{
	struct source_load *l = container_of(d, struct source_load, end);
	if (l->state == LOAD_RUNS)
		source_load_stop(l);
	else
		abort_all(l);
}

static void on_source_signal(void *ctx, int signum)
{
	struct source_load *l = ctx;
	if (l->state == LOAD_RUNS)
		source_load_stop(l);
	else
		abort_all(l);
}

static void on_give_up(struct source_host *host)
{
	struct source_load *l = container_of(host, struct source_load, host);
	source_load_stop(l);
	abort_all(l);
}

/* Connecting */

static void connect_next(struct source_load *l)
{
	struct source_session *s;
	while (l->state == LOAD_RUNS && l->connecting < l->host.options->connects &&
		(s = session_list_take(&l->to_connect))) {
		l->connecting++;
		source_session_connect(s);
	}
}

static void on_connect_over(struct source_host *host)
{
	struct source_load *l = container_of(host, struct source_load, host);
	l->connecting--;
	connect_next(l);
}

/* Work */

/* The number of its next mail among those of all processes. */
static uint64_t next_number(const struct source_load *l)
{
	return l->index + l->given * l->host.options->processes;
}

static uint64_t due_ns(const struct source_load *l)
{
	return l->host.result->times.begin_ns + schedule_due_ns(&l->host.options->schedule, next_number(l));
}

static void source_load_give(struct source_load *l, struct source_session *s, uint64_t intended_ns)
{
	source_session_take(s, next_number(l), intended_ns);
	l->given++;
	if (s->state == SOURCE_IS_AWAY) {
		session_list_add(&l->to_connect, s, LISTED_TO_CONNECT);
		connect_next(l);
	}
}

static bool has_more(const struct source_load *l)
{
	return l->state == LOAD_RUNS && l->given < l->host.result->mails;
}

static void give_when_due(struct source_load *l, struct source_session *s)
{
	uint64_t at = due_ns(l);
	if (at <= uv_hrtime()) {
		histogram_record(&l->host.result->phases[SOURCE_PHASE_LATE], uv_hrtime() - at);
		source_load_give(l, s, at);
		return;
	}
	int was_empty = TAILQ_EMPTY(&l->free);
	session_list_add(&l->free, s, LISTED_FREE);
	if (was_empty)
		due_timer_set(l->due_timer, at);
}

static void on_source_due(void *ctx)
{
	struct source_load *l = ctx;
	struct source_session *s;
	while (has_more(l) && due_ns(l) <= uv_hrtime() && (s = session_list_take(&l->free)))
		give_when_due(l, s);
	if (has_more(l) && !TAILQ_EMPTY(&l->free))
		due_timer_set(l->due_timer, due_ns(l));
	while (!has_more(l) && (s = session_list_take(&l->free))) {
		if (s->state == SOURCE_IS_READY)
			source_session_quit(s);
		else if (s->state == SOURCE_IS_AWAY)
			source_load_retire(l, s);
	}
}

/* A free session: give it a mail that failed before, or the next one, or end it. */
static void source_load_go_on(struct source_host *host, struct source_session *s)
{
	struct source_load *l = container_of(host, struct source_load, host);
	if (l->state == LOAD_RUNS && s->has_mail) {
		session_list_add(&l->to_connect, s, LISTED_TO_CONNECT);
		connect_next(l);
	} else if (has_more(l) && host->options->schedule.rate > 0) {
		give_when_due(l, s);
	} else if (has_more(l)) {
		source_load_give(l, s, uv_hrtime());
	} else if (s->state == SOURCE_IS_READY) {
		source_session_quit(s);
	} else if (s->state == SOURCE_IS_AWAY) {
		source_load_retire(l, s);
	}
}

static uint64_t pause_ms(const struct source_options *o)
{
	uint64_t random = o->random_pause_ms ? randombytes_uniform((uint32_t)o->random_pause_ms + 1) : 0;
	return o->pause_ms + random;
}

/* The pause comes after a mail, and on the same connection if that stays. */
static void on_source_session_free(struct source_host *host, struct source_session *s)
{
	struct source_load *l = container_of(host, struct source_load, host);
	uint64_t ms = pause_ms(host->options);
	unlist_one(l, s);
	if (ms > 0 && has_more(l) && !s->has_mail)
		source_session_pause(s, ms);
	else
		source_load_go_on(host, s);
}

/* The start */

static void on_source_progress(void *ctx)
{
	struct source_load *l = ctx;
	source_result_kind.progress(l->host.result, NULL, 0);
}

static void on_start(struct deadline *d)
{
	struct source_load *l = container_of(d, struct source_load, start);
	const struct source_options *o = l->host.options;
	l->state = LOAD_RUNS;
	l->host.result->times.begin_ns = uv_hrtime();
	if (o->duration_ms > 0)
		deadline_set(l->host.worker, &l->end, o->duration_ms);
	for (uint64_t i = 0; i < l->session_count && l->state != LOAD_IS_DONE; i++) {
		if (l->sessions[i].state == SOURCE_IS_AWAY)
			source_load_go_on(&l->host, &l->sessions[i]);
	}
}

static int source_load_prepare(struct source_load *l)
{
	static const int stop_signals[] = { SIGTERM, SIGINT };
	const struct source_options *o = l->host.options;
	if (source_mail_make(&l->mail, o) || (o->tls != SOURCE_CLEAR && client_tls_open(&l->host.tls, &o->tls_options)))
		return -1;
	l->sessions = calloc(l->session_count, sizeof *l->sessions);
	l->host.worker = worker_create(0, "smtp-source");
	if (!l->sessions || !l->host.worker)
		return -1;
	l->due_timer = due_timer_create(l->host.worker, on_source_due, l);
	l->signals = signals_create(l->host.worker, stop_signals, 2, on_source_signal, l);
	if (!l->due_timer || !l->signals)
		return -1;
	if (o->progress != SOURCE_PROGRESS_NEVER && o->processes == 1) /* of several, the parent shows it */
		l->progress = timer_start(l->host.worker, on_source_progress, l, PROGRESS_MS, PROGRESS_MS);
	for (uint64_t i = 0; i < l->session_count; i++)
		source_session_init(&l->sessions[i], &l->host, l->index + i * o->processes);
	return 0;
}

static void source_load_destroy(struct source_load *l)
{
	if (l->host.worker && l->state != LOAD_IS_DONE) { /* it never ran: its handles have to be closed */
		source_load_finish(l);
		worker_run(l->host.worker);
	}
	for (uint64_t i = 0; l->sessions && i < l->session_count; i++)
		source_session_wipe(&l->sessions[i]);
	worker_destroy(l->host.worker);
	client_tls_close(&l->host.tls);
	source_mail_free(&l->mail);
	free(l->sessions);
	free(l);
}

/* Process @index of those of @options (struct source_options), as processes.h wants it: until all its mails are sent,
 * the time is over, or SIGTERM or SIGINT came. @result: struct source_result. It fails if it cannot start, or gave up.
 */
static int source_load_run(const void *options, unsigned index, void *result)
{
	const struct source_options *o = options;
	struct source_result *counted = result;
	struct source_load *l = calloc(1, sizeof *l);

	if (!l)
		return EXIT_FAILURE;
	counted->mails = schedule_share(o->messages, index, o->processes);
	l->index = index;
	l->session_count = schedule_share(o->sessions, index, o->processes);
	l->host.options = o;
	l->host.mail = &l->mail;
	l->host.result = counted;
	l->host.on_free = on_source_session_free;
	l->host.on_pause_end = source_load_go_on;
	l->host.on_connect_over = on_connect_over;
	l->host.on_give_up = on_give_up;
	l->start.fn = on_start;
	l->end.fn = on_source_time_over;
	TAILQ_INIT(&l->free);
	TAILQ_INIT(&l->to_connect);
	bool failed = source_load_prepare(l) != 0;
	if (failed) {
		fprintf(stderr, "smtp-source: cannot start\n");
	} else {
		if (o->processes > 1)
			processes_stand();
		deadline_set(l->host.worker, &l->start, 0);
		worker_run(l->host.worker);
		failed = counted->counts[SOURCE_FAILED] > 0 && o->on_failure == SOURCE_GIVES_UP;
	}
	source_load_destroy(l);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int smtp_source_main(int argc, char **argv)
{
	static struct source_options options;

	const enum option_parse parsed = source_options_parse(argc, argv, &options);

	if (parsed != OPTIONS_PARSED)
		return parsed;
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	descriptors_raise(0);
	log_open("cssl-bench", "smtp-source", LOG_TEXT, LOG_WARNING, NULL);
	const struct processes_work work = { &source_result_kind, &options, (unsigned)options.processes,
		source_load_run, NULL, options.save, options.output, options.progress != SOURCE_PROGRESS_NEVER };
	int status = processes_run(&work);
	log_close();
	return status;
}
