/* notes.h: memory that the keeper shares with RAgent proper, and with the next RAgent proper after a death. RAgent
 * writes what the keeper must know of it (does it serve, does it make progress) and what the next one needs (its
 * listening sockets). The keeper writes how often RAgent died, and when.
 *
 * RAgent's threads and the keeper read and write at the same time, so each value that changes while RAgent serves is
 * atomic. The list of sockets changes only before RAgent serves.
 */
#ifndef CSSL_RAGENT_NOTES_H
#define CSSL_RAGENT_NOTES_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "ragent/keeper/suspects.h"

#define NOTES_KEY_MAX 320u /* bytes, with the terminator */

enum notes_stage {
	NOTES_STARTING, /* it may still fail, and another process may still serve */
	NOTES_SERVING,
	NOTES_GIVING, /* another process may have its connections already: none may follow it */
	NOTES_ENDING  /* it stops in order, or was replaced */
};

enum death_cause {
	DEATH_KILLED,  /* by SIGKILL that the keeper did not send */
	DEATH_CRASHED, /* by another signal, or it ended by itself without being asked */
	DEATH_HUNG,    /* a thread made no progress, and the keeper killed it */
	DEATH_CAUSE_COUNT
};

struct noted_socket {
	char key[NOTES_KEY_MAX]; /* what it is for: ragent/worker/passed_sockets.h */
	uint32_t worker;
	int32_t fd;
};

struct notes {
	uint32_t thread_count, socket_cap;
	_Atomic uint32_t stage;  /* enum notes_stage */
	_Atomic uint32_t keeper; /* process id */
	_Atomic uint64_t deaths[DEATH_CAUSE_COUNT];
	_Atomic uint32_t last_cause; /* enum death_cause, of the last death */
	_Atomic uint64_t died_ns;    /* CLOCK_MONOTONIC, of the last death; 0: none */
	struct table *table;         /* of connections; NULL: none of them goes on after a death */
	struct table *kept;          /* of client records that belong to them */
	struct suspects suspects;
	struct client_address *working; /* by worker: whose bytes it works on; .len 0: nobody's */
	uint32_t socket_count;
	struct noted_socket *sockets; /* in this memory, which is at the same address in all of these processes */
	_Atomic uint32_t beats[];     /* by thread: it counts up while the thread's loop turns */
};

/* Shared with all processes that this one makes later. NULL: no memory. */
struct notes *notes_create(unsigned threads, unsigned sockets);
/* In each process that has it; NULL is legal. */
void notes_destroy(struct notes *n);

/* From any thread; NULL is legal for each of these: RAgent runs without a keeper. */
void notes_set_stage(struct notes *n, enum notes_stage stage);
/* GIVING is over: it serves. In another stage: nothing. */
void notes_go_on_serving(struct notes *n);
void notes_beat(struct notes *n, unsigned thread);
uint64_t notes_deaths(const struct notes *n);

/* @fd stays with the caller. 0, CSSL_E_TOO_LONG, or CSSL_E_NO_MEMORY: there are more sockets than notes_create() was
 * told of. */
int notes_add_socket(struct notes *n, const char *key, unsigned worker, int fd);

/* In the process after a death, before its threads run: the sources whose bytes were worked on become suspects if it
 * was a crash. Each is logged. */
void notes_suspect_sources(struct notes *n);

/* 1 or 0: its number was closed, or is something else's now. */
int notes_socket_listens(const struct noted_socket *s);

const char *death_cause_name(enum death_cause cause);

#endif
