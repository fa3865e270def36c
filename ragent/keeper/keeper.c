/* keeper.c: one loop around sigtimedwait(2). All signals are blocked, so no signal has an effect between two calls. */
#include "ragent/keeper/keeper.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/report/log.h"

#define SHORT_LIFE_MS 1000u /* a process that served for less is a short life; after several there is a pause */
#define NS_PER_MS     1000000u
#define MAIN_THREAD   0u

/* The keeper's view of one thread of the child. */
struct watched_thread {
	uint32_t beat;
	uint32_t ticks_without_progress;
};

struct keeper {
	const struct keeper_params *p;
	sigset_t waited_for, before;
	pid_t child; /* 0: none */
	enum keeper_life life;
	enum { STOP_NOT_ASKED, STOP_ASKED } stop;
	enum { CHILD_IS_BELIEVED, CHILD_IS_KILLED } verdict;
	uint32_t hung; /* CHILD_IS_KILLED: the thread without progress; NOTES_NO_THREAD: none made progress */
	unsigned owed; /* signals that the child has not got yet: bits, in the order of @forwarded */
	uint64_t served_since_ns; /* 0: the child has not served yet */
	unsigned short_lives;     /* in a row */
	struct watched_thread threads[];
};

static const int forwarded[] = { SIGTERM, SIGINT, SIGHUP, SIGCONT };

#define FORWARDED_COUNT (sizeof forwarded / sizeof forwarded[0])

static sigset_t before_keeper; /* in the child: the signals that stay blocked when it can handle the others */

uint32_t keeper_pause_ms(unsigned short_lives)
{
	static const uint32_t pauses[] = { 0, 0, 0, 50, 100, 200, 500, 1000, 2000, 5000 };
	const unsigned last = sizeof pauses / sizeof pauses[0] - 1;

	return pauses[short_lives < last ? short_lives : last];
}

/* --- signals --- */

static void block_signals(struct keeper *k)
{
	sigemptyset(&k->waited_for);
	sigaddset(&k->waited_for, SIGCHLD);
	for (unsigned i = 0; i < FORWARDED_COUNT; i++)
		sigaddset(&k->waited_for, forwarded[i]);
	sigprocmask(SIG_BLOCK, &k->waited_for, &k->before);
}

/* The next signal, or 0 after @ms. */
static int next_signal(const struct keeper *k, uint32_t ms)
{
	const struct timespec limit = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000 * NS_PER_MS) };
	int signum = sigtimedwait(&k->waited_for, NULL, &limit);

	return signum > 0 ? signum : 0;
}

/* A child that was just made still has root's rights for a moment; until it gives them up, the signal has to wait. */
static void keeper_pay(struct keeper *k)
{
	for (unsigned i = 0; k->child && i < FORWARDED_COUNT; i++)
		if (k->owed & 1u << i && kill(k->child, forwarded[i]) == 0)
			k->owed &= ~(1u << i);
}

static void keeper_forward(struct keeper *k, int signum)
{
	if (signum == SIGTERM || signum == SIGINT)
		k->stop = STOP_ASKED;
	for (unsigned i = 0; i < FORWARDED_COUNT; i++)
		if (forwarded[i] == signum)
			k->owed |= 1u << i;
	keeper_pay(k);
}

/* --- birth --- */

/* A fork(2) that shares the descriptors. glibc keeps the thread's id in the place where the kernel writes it at a
 * fork, so it is passed here, too. The address stands twice, because architectures have the last two arguments in
 * different orders; the other argument is not read. */
static pid_t clone_sharing_descriptors(void)
{
	unsigned long flags = CLONE_FILES | SIGCHLD;
	int *id = NULL;

	if (prctl(PR_GET_TID_ADDRESS, &id) == 0 && id)
		flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
	return (pid_t)syscall(SYS_clone, flags, NULL, NULL, id, id);
}

/* A process group of its own: Ctrl-C reaches only the keeper, which passes it on once. The signals stay blocked
 * until the child can handle them (keeper_take_signals()). Until then they wait, and end no process. */
static void begin_child(const struct keeper *k)
{
	setpgid(0, 0);
	prctl(PR_SET_NAME, "ragent");
	before_keeper = k->before;
}

void keeper_take_signals(void)
{
	sigprocmask(SIG_SETMASK, &before_keeper, NULL);
}

/* 0 in the child, positive in the keeper, negative: no child was made. */
static pid_t give_life(struct keeper *k)
{
	notes_set_stage(k->p->notes, NOTES_STARTING);
	k->served_since_ns = 0;
	k->verdict = CHILD_IS_BELIEVED;
	atomic_store(&k->p->notes->shared->crashing_in, NOTES_NO_THREAD);
	memset(k->threads, 0, k->p->notes->thread_count * sizeof k->threads[0]);
	fflush(NULL); /* or both processes would write the same buffers */
	pid_t child = clone_sharing_descriptors();
	if (child == 0)
		begin_child(k);
	k->child = child > 0 ? child : 0;
	keeper_pay(k);
	return child;
}

/* --- life --- */

static enum notes_stage keeper_stage(const struct keeper *k)
{
	return (enum notes_stage)atomic_load(&k->p->notes->shared->stage);
}

/* The thread that made no progress for longest, and for how many ticks. */
static uint32_t keeper_slowest(struct keeper *k, uint32_t *ticks)
{
	const struct notes *n = k->p->notes;
	uint32_t slow = 0, longest = 0, shortest = UINT32_MAX;

	for (unsigned i = 0; i < n->thread_count; i++) {
		struct watched_thread *t = &k->threads[i];
		uint32_t beat = atomic_load_explicit(&n->beats[i], memory_order_relaxed);
		t->ticks_without_progress = beat == t->beat ? t->ticks_without_progress + 1 : 0;
		t->beat = beat;
		if (t->ticks_without_progress < shortest)
			shortest = t->ticks_without_progress;
		if (t->ticks_without_progress > longest) {
			longest = t->ticks_without_progress;
			slow = i;
		}
	}
	*ticks = keeper_stage(k) == NOTES_STARTING ? shortest : longest;
	return keeper_stage(k) == NOTES_STARTING ? NOTES_NO_THREAD : slow;
}

/* Has a thread made no progress for too long? While the child starts, not all of its threads run yet, so the progress
 * of one is enough. The keeper counts its own ticks, so that a paused machine is no hang. */
static bool is_hung(struct keeper *k)
{
	uint32_t ticks;

	k->hung = keeper_slowest(k, &ticks);
	return ticks * KEEPER_TICK_MS >= k->p->hang_ms;
}

/* A first process may wait long for the process that it replaces. */
static bool is_watched(const struct keeper *k)
{
	const enum notes_stage now = keeper_stage(k);

	if (now == NOTES_STARTING)
		return k->child && k->life == KEEPER_NEXT_LIFE;
	return k->child && (now == NOTES_SERVING || now == NOTES_RESTORING);
}

static void keeper_tick(struct keeper *k)
{
	k->p->tick(k->p->ctx);
	keeper_pay(k);
	if (!is_watched(k))
		return;
	if (!k->served_since_ns && keeper_stage(k) == NOTES_SERVING)
		k->served_since_ns = notes_now_ns();
	if (k->verdict == CHILD_IS_KILLED || !is_hung(k))
		return;
	log_event(LOG_ERROR, NULL, "ragent hangs",
		"pid=%d without_progress_ms=%u effect=\"it is killed and started again\"", (int)k->child,
		k->p->hang_ms);
	k->verdict = CHILD_IS_KILLED;
	kill(k->child, SIGKILL);
}

/* 1 with *@status when the child has ended. In a container the keeper may be process 1 and get other orphans, too. */
static bool has_ended(struct keeper *k, int *status)
{
	pid_t ended;

	while ((ended = waitpid(-1, status, WNOHANG)) > 0) {
		if (ended == k->child) {
			k->child = 0;
			return true;
		}
	}
	return false;
}

/* --- death --- */

static enum death_cause cause_of(const struct keeper *k, int status)
{
	if (k->verdict == CHILD_IS_KILLED)
		return DEATH_HUNG;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? DEATH_KILLED : DEATH_CRASHED;
}

/* Did it end although it should have served? */
static bool was_death(const struct keeper *k, int status)
{
	/* GIVING: the other process may have the connections already, and two must not have one (law 2) */
	if (k->stop == STOP_ASKED || keeper_stage(k) == NOTES_ENDING || keeper_stage(k) == NOTES_GIVING)
		return false;
	if (k->life == KEEPER_FIRST_LIFE && keeper_stage(k) == NOTES_STARTING)
		return false;
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

/* The last child has to make progress. A second order to stop means: at once. */
static void watch_last(struct keeper *k, int signum)
{
	const bool is_order = signum == SIGTERM || signum == SIGINT;
	const bool is_urged = is_order && k->stop == STOP_ASKED;

	if (is_order)
		k->stop = STOP_ASKED;
	if (signum == 0)
		k->p->tick(k->p->ctx);
	if (is_urged || (signum == 0 && is_hung(k)))
		kill(k->child, SIGKILL);
}

/* It reads memory that the dead process could write, so it may crash or go on without an end. true: it did its work. */
static bool abandon_in_last_child(struct keeper *k)
{
	int status = 0;

	fflush(NULL);
	memset(k->threads, 0, k->p->notes->thread_count * sizeof k->threads[0]);
	pid_t last = clone_sharing_descriptors();
	if (last == 0) {
		k->p->abandon(k->p->ctx);
		_exit(EXIT_SUCCESS);
	}
	if (last < 0)
		return false;
	k->child = last;
	while (!has_ended(k, &status))
		watch_last(k, next_signal(k, KEEPER_TICK_MS));
	return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

static void keeper_abandon(struct keeper *k)
{
	if (abandon_in_last_child(k))
		return;
	log_event(
		LOG_ERROR, NULL, "the last child failed", "effect=\"the keeper resets the connections that are left\"");
	k->p->abandon_without_table(k->p->ctx);
}

/* Did it use bytes of a client? Then these ended it, not what it restored. */
static bool has_a_client_to_blame(const struct notes *n)
{
	for (unsigned worker = 0; worker + 1 < n->thread_count; worker++)
		if (notes_blamed(n, worker))
			return true;
	return false;
}

/* A life that hangs served until then. */
static bool served_shortly(const struct keeper *k, enum death_cause cause)
{
	const uint64_t hang_ms = cause == DEATH_HUNG ? k->p->hang_ms : 0;
	const uint64_t short_ns = (SHORT_LIFE_MS + hang_ms) * NS_PER_MS;

	return !k->served_since_ns || notes_now_ns() - k->served_since_ns < short_ns;
}

/* Connections that were restored may end a process at what happens to them first: it serves by then. But one that is
 * killed while it serves was killed by somebody else, and the main thread has no connections. A life that ends by
 * itself before it serves could not start. That says nothing of what it restored. */
static bool died_restoring(const struct keeper *k, int status, enum death_cause cause)
{
	const bool was_restoring = keeper_stage(k) == NOTES_STARTING || keeper_stage(k) == NOTES_RESTORING;
	const bool was_new = keeper_stage(k) == NOTES_SERVING && cause != DEATH_KILLED && served_shortly(k, cause) &&
			     k->p->notes->last_thread != MAIN_THREAD;

	return k->life == KEEPER_NEXT_LIFE && (was_restoring || was_new) && WIFSIGNALED(status) &&
	       !has_a_client_to_blame(k->p->notes);
}

static void note_death(struct keeper *k, int status)
{
	const enum death_cause cause = cause_of(k, status);
	struct notes *n = k->p->notes;
	uint64_t now = notes_now_ns();

	atomic_fetch_add(&n->shared->deaths[cause], 1);
	atomic_store(&n->shared->died_ns, now);
	n->life++;
	n->last_cause = cause;
	n->last_thread = cause == DEATH_HUNG ? k->hung : atomic_load(&n->shared->crashing_in);
	n->died_restoring = died_restoring(k, status, cause) ? n->died_restoring + 1 : 0;
	if (!served_shortly(k, DEATH_KILLED))
		k->short_lives = 0;
	k->life = KEEPER_NEXT_LIFE;
	log_event(LOG_ERROR, NULL, "ragent died", "cause=%s signal=%d status=%d deaths=%llu next_in_ms=%u",
		death_cause_name(cause), WIFSIGNALED(status) ? WTERMSIG(status) : 0,
		WIFEXITED(status) ? WEXITSTATUS(status) : 0, (unsigned long long)notes_deaths(n),
		keeper_pause_ms(k->short_lives));
}

/* 0 in the child, positive in the keeper; negative: a stop was ordered meanwhile. */
static pid_t give_next_life(struct keeper *k)
{
	pid_t child = -1;

	while (child < 0) {
		uint64_t end_ns = notes_now_ns() + (uint64_t)keeper_pause_ms(k->short_lives++) * NS_PER_MS;
		while (k->stop == STOP_NOT_ASKED && notes_now_ns() < end_ns) {
			int signum = next_signal(k, KEEPER_TICK_MS);
			if (signum && signum != SIGCHLD)
				keeper_forward(k, signum);
			k->p->tick(k->p->ctx);
		}
		if (k->stop == STOP_ASKED)
			return -1;
		child = give_life(k);
		if (child < 0)
			log_event(LOG_ERROR, NULL, "ragent cannot be started", "cause=%s", strerror(errno));
	}
	return child;
}

/* The keeper ends as its last child did, so that the process that waits for the keeper learns it. */
static int end_alike(const struct keeper *k, int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	signal(WTERMSIG(status), SIG_DFL);
	sigprocmask(SIG_SETMASK, &k->before, NULL);
	raise(WTERMSIG(status));
	return EXIT_FAILURE;
}

/* false: this process is the next child. true: there is no child any more. */
static bool keeper_keep(struct keeper *k, int *status)
{
	for (;;) {
		int signum = next_signal(k, KEEPER_TICK_MS);
		if (signum == 0)
			keeper_tick(k);
		else if (signum != SIGCHLD)
			keeper_forward(k, signum);
		if (!has_ended(k, status))
			continue;
		if (!was_death(k, *status)) {
			/* else its clients' sockets, still open here, would get FIN when this process ends (law 8) */
			if (WIFSIGNALED(*status))
				keeper_abandon(k);
			return true;
		}
		note_death(k, *status);
		pid_t child = give_next_life(k);
		if (child == 0)
			return false;
		if (child < 0) {
			keeper_abandon(k);
			*status = EXIT_SUCCESS;
			return true;
		}
	}
}

static int keeper_settle(struct keeper *k)
{
	int status;

	if (k->p->settle(k->p->ctx) == 0)
		return 0;
	kill(k->child, SIGKILL);
	waitpid(k->child, &status, 0);
	return -1;
}

static int keeper_run_lives(struct keeper *k)
{
	int status = EXIT_SUCCESS;
	pid_t child = give_life(k);

	if (child > 0) {
		prctl(PR_SET_NAME, "ragent-keeper");
		if (keeper_settle(k) < 0)
			return EXIT_FAILURE;
	}
	if (child < 0)
		return EXIT_FAILURE;
	if (child > 0 && keeper_keep(k, &status))
		return end_alike(k, status);
	return k->p->live(k->p->ctx, k->life);
}

int keeper_run(const struct keeper_params *p)
{
	struct keeper *k = calloc(1, sizeof *k + p->notes->thread_count * sizeof k->threads[0]);

	if (!k)
		return EXIT_FAILURE;
	k->p = p;
	atomic_store(&p->notes->shared->keeper, (uint32_t)getpid());
	block_signals(k);
	int status = keeper_run_lives(k);
	free(k);
	return status;
}
