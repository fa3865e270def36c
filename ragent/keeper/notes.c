/* notes.c: one anonymous shared mapping: the structure, the beats of the threads, the connections that the workers
 * work on, the sockets.
 */
#include "ragent/keeper/notes.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include <sodium.h>

#include "net/report/log.h"
#include "net/socket/address.h"
#include "net/socket/endpoints.h"
#include "proto/error.h"

/* Each part begins at a multiple of this. */
#define ALIGNMENT 64u

#define SECOND_STACK_LEN 32768u

static size_t notes_align(size_t end)
{
	return (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

struct notes *notes_create(unsigned threads, unsigned sockets)
{
	struct notes *n = calloc(1, sizeof *n);
	const size_t beats = notes_align(sizeof *n->shared), working = beats + notes_align(threads * sizeof *n->beats),
		     noted = working + notes_align(threads * sizeof *n->working);

	if (!n)
		return NULL;
	n->shared_len = noted + sockets * sizeof *n->sockets;
	uint8_t *all = mmap(NULL, n->shared_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED) {
		free(n);
		return NULL;
	}
	randombytes_buf(n->outliving.secret, sizeof n->outliving.secret);
	n->thread_count = threads;
	n->socket_cap = sockets;
	n->last_thread = NOTES_NO_THREAD;
	n->shared = (struct shared_notes *)all;
	n->beats = (_Atomic uint32_t *)(all + beats);
	n->working = (const void *_Atomic *)(all + working);
	n->sockets = (struct noted_socket *)(all + noted);
	atomic_store(&n->shared->crashing_in, NOTES_NO_THREAD);
	return n;
}

void notes_destroy(struct notes *n)
{
	if (!n)
		return;
	munmap(n->shared, n->shared_len);
	free(n);
}

bool notes_forbid_restore(const struct notes *n)
{
	return n->died_restoring >= (n->last_cause == DEATH_KILLED ? NOTES_RESTORE_KILLS : NOTES_RESTORE_DEATHS);
}

uint64_t notes_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void notes_set_stage(struct notes *n, enum notes_stage stage)
{
	if (n)
		atomic_store(&n->shared->stage, stage);
}

void notes_go_on_serving(struct notes *n)
{
	uint32_t giving = NOTES_GIVING;

	if (n)
		atomic_compare_exchange_strong(&n->shared->stage, &giving, NOTES_SERVING);
}

void notes_share(struct notes *n, unsigned worker)
{
	if (n)
		atomic_store(&n->shared->shared_worker, worker + 1);
}

void notes_share_from(struct notes *n, unsigned worker, int channel)
{
	if (n)
		atomic_store(&n->shared->channel, (uint32_t)channel + 1);
	notes_share(n, worker);
}

void notes_share_nothing(struct notes *n)
{
	if (!n)
		return;
	atomic_store(&n->shared->shared_worker, 0);
	atomic_store(&n->shared->channel, 0);
}

void notes_beat(struct notes *n, unsigned thread)
{
	if (n && thread < n->thread_count)
		atomic_fetch_add_explicit(&n->beats[thread], 1, memory_order_relaxed);
}

void notes_beat_all(struct notes *n)
{
	for (unsigned i = 0; n && i < n->thread_count; i++)
		notes_beat(n, i);
}

uint64_t notes_deaths(const struct notes *n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; n && i < DEATH_CAUSE_COUNT; i++)
		sum += atomic_load(&n->shared->deaths[i]);
	return sum;
}

uint32_t notes_socket_count(const struct notes *n)
{
	const uint32_t count = n->shared->socket_count;

	return count < n->socket_cap ? count : n->socket_cap;
}

int notes_add_socket(struct notes *n, const char *key, unsigned worker, int fd)
{
	if (!n)
		return 0;
	if (strlen(key) >= NOTES_KEY_MAX)
		return CSSL_E_TOO_LONG;
	if (notes_socket_count(n) == n->socket_cap)
		return CSSL_E_NO_MEMORY;
	struct noted_socket *s = &n->sockets[n->shared->socket_count++];
	strcpy(s->key, key);
	s->worker = worker;
	s->fd = fd;
	return 0;
}

/* --- who is to blame --- */

static struct shared_notes *crashing; /* NULL: not watched */
static _Thread_local uint32_t this_thread = NOTES_NO_THREAD;

/* At the second time it ends the process. */
static void on_crash(int signum)
{
	atomic_store(&crashing->crashing_in, this_thread);
	raise(signum);
}

static void watch_for_crashes(struct notes *n)
{
	static const int signums[] = { SIGABRT,
#ifndef CSSL_SANITIZED /* which have handlers of their own for these */
		SIGSEGV, SIGBUS, SIGILL, SIGFPE
#endif
	};
	const struct sigaction once = { .sa_handler = on_crash,
		.sa_flags = (int)(SA_RESETHAND | SA_NODEFER | SA_ONSTACK) };

	crashing = n->shared;
	for (unsigned i = 0; i < sizeof signums / sizeof signums[0]; i++)
		sigaction(signums[i], &once, NULL);
}

/* A thread that crashes because its stack is full has no room there for on_crash(). */
static void take_second_stack(void)
{
#ifndef CSSL_SANITIZED /* which have one */
	static _Thread_local uint8_t room[SECOND_STACK_LEN];
	const stack_t second = { .ss_sp = room, .ss_size = sizeof room };

	sigaltstack(&second, NULL);
#endif
}

void notes_enter_thread(struct notes *n, unsigned thread)
{
	if (!n)
		return;
	take_second_stack();
	this_thread = thread;
	if (!crashing)
		watch_for_crashes(n);
}

const void *notes_blamed(const struct notes *n, unsigned worker)
{
	const int is_blamed =
		n->last_thread == worker + 1 || (n->last_thread == NOTES_NO_THREAD && n->last_cause == DEATH_CRASHED);

	if (n->last_cause == DEATH_KILLED || !is_blamed || worker + 1 >= n->thread_count)
		return NULL;
	return atomic_load(&n->working[worker]);
}

void notes_suspect(struct notes *n, const struct client_address *address)
{
	const uint64_t died_ms = atomic_load(&n->shared->died_ns) / 1000000;
	const uint32_t crashes = suspects_add(&n->shared->suspects, address, died_ms);
	struct sockaddr_storage source;
	char text[ADDRESS_TEXT_MAX];

	if (crashes == 0)
		return;
	endpoint_sockaddr(address, 0, &source);
	log_event(LOG_WARNING, NULL, "source suspected",
		"source=%s crashes=%u refused_s=%u cause=\"ragent crashed or hung on bytes of this source\"",
		address_format((const struct sockaddr *)&source, text), crashes,
		crashes >= SUSPECT_CRASHES ? SUSPECT_REFUSED_MS / 1000 : 0);
}

int notes_socket_option(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof value;

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 ? value : -1;
}

bool notes_socket_listens(const struct noted_socket *s)
{
	return notes_socket_option(s->fd, SO_ACCEPTCONN) > 0;
}

const char *death_cause_name(enum death_cause cause)
{
	static const char *const names[DEATH_CAUSE_COUNT] = {
		[DEATH_KILLED] = "killed", [DEATH_CRASHED] = "crashed", [DEATH_HUNG] = "hung"
	};

	return names[cause];
}
