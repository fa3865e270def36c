/* notes.h: memory that the keeper shares with RAgent proper, and with the next RAgent proper after a death. RAgent
 * writes facts for the keeper (whether it serves and makes progress) and for the next process (its listening
 * sockets). The keeper writes how often RAgent died, and when. The note of a connection is another thing
 * (ragent/connection/ownership/copies.h).
 *
 * RAgent's threads and the keeper read and write at the same time, so each value that changes while RAgent serves is
 * atomic. The list of sockets changes only before RAgent serves. The addresses and sizes of the parts are in memory
 * that each process has for itself, because the keeper trusts no value that RAgent could have written.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "net/limits/blocked.h"
#include "ragent/keeper/suspects.h"

struct slot_table;

#define NOTES_KEY_MAX 320u /* bytes, with the terminator */

enum notes_stage {
	NOTES_STARTING, /* it may still fail, and another process may still serve */
	NOTES_SERVING,
	NOTES_RESTORING, /* it serves, and has not restored all connections of the process before */
	NOTES_GIVING,    /* another process may have its connections already, so no process may follow it */
	NOTES_ENDING     /* it stops in order, or was replaced */
};

enum death_cause {
	DEATH_KILLED,  /* by SIGKILL that the keeper did not send */
	DEATH_CRASHED, /* by another signal, or it ended without an order */
	DEATH_HUNG,    /* a thread made no progress, and the keeper killed it */
	DEATH_CAUSE_COUNT
};

struct noted_socket {
	char key[NOTES_KEY_MAX]; /* the use of the socket: ragent/worker/passed_sockets.h */
	uint32_t worker;         /* it has the socket */
	int32_t fd;
};

/* What happened to the connections at all deaths since the keeper's start. The next RAgent counts them before its
 * threads serve. */
struct fates {
	_Atomic uint64_t went_on, fresh; /* fresh: no byte had been read or written, so they were accepted as new */
	_Atomic uint64_t reset;          /* those below, and those of which nothing was saved at that moment */
	_Atomic uint64_t outdated;       /* the kernel had read or written more than was saved */
	_Atomic uint64_t not_restored;   /* the process could not go on with what was saved, or with their agent */
	_Atomic uint64_t given_up;       /* their restoring had ended a process */
	_Atomic uint64_t starts_without_restore;  /* processes that restored nothing (struct notes) */
	_Atomic uint64_t pause_us, last_pause_us; /* from the death until the next one served: sum, last */
};

/* In the shared memory. An attacked RAgent can write anything here, so a reader checks every number before it uses
 * it. */
struct shared_notes {
	_Atomic uint32_t stage;         /* enum notes_stage */
	_Atomic uint32_t keeper;        /* process id */
	_Atomic uint32_t shared_worker; /* the one whose sockets another process has now, too, plus 1; 0: none */
	_Atomic uint32_t channel;       /* on which that process gives it, plus 1; 0: it takes it */
	_Atomic uint64_t deaths[DEATH_CAUSE_COUNT];
	_Atomic uint64_t died_ns;     /* CLOCK_MONOTONIC, of the last death; 0: none */
	_Atomic uint32_t crashing_in; /* thread; NOTES_NO_THREAD */
	struct fates fates;
	struct suspects suspects;
	struct blocked blocked; /* by an operator; changes at any time */
	uint32_t socket_count;
};

#define NOTES_NO_THREAD UINT32_MAX

/* After so many lives in a row that died while they restored, the next one restores nothing. Those that were killed
 * from outside may have had bad luck, so there may be one more if the last one was. The table has no room of its own
 * for it (conf/memory.c): connections that find none go on, and end at the next death. */
#define NOTES_RESTORE_DEATHS 2u
#define NOTES_RESTORE_KILLS  3u

/* What streams to agents need to outlive a RAgent proper. Made by the keeper, for all its children. */
struct outliving {
	uint8_t secret[32];    /* proves to agents that the next RAgent proper is the successor of this one */
	uint8_t *read_buffers; /* one for each worker, shared: it may not have used all that it read last; NULL: none */
};

/* In memory that each process has for itself, as the keeper had it when it made the process. Thread 0 is the main
 * one; the workers follow. */
struct notes {
	uint32_t thread_count, socket_cap;
	uint32_t life;               /* 0: the first */
	enum death_cause last_cause; /* of the life before */
	uint32_t last_thread;        /* the thread that crashed or hung then; NOTES_NO_THREAD: unknown */
	uint32_t died_restoring;  /* so many lives in a row, until now, died while they restored, or right after it */
	struct slot_table *table; /* of connections; NULL: none of them continues after a death */
	struct outliving outliving;
	struct shared_notes *shared;
	size_t shared_len;
	_Atomic uint32_t *beats;      /* shared, for each thread: a number that rises while the thread's loop runs */
	const void *_Atomic *working; /* shared, for each worker: what it works on (connection_home.h); NULL: nothing */
	struct noted_socket *sockets; /* shared */
};

/* Did too many lives die while they restored? Then this one restores nothing. */
bool notes_forbid_restore(const struct notes *n);

/* Shared with all processes that this one makes later. NULL: out of memory. */
struct notes *notes_create(unsigned threads, unsigned sockets);
/* Call it in each process that has the notes. NULL is legal. */
void notes_destroy(struct notes *n);

/* The clock of all times here: CLOCK_MONOTONIC. */
uint64_t notes_now_ns(void);

/* From any thread. @n may be NULL in each of these: RAgent runs without a keeper. */
void notes_set_stage(struct notes *n, enum notes_stage stage);
/* GIVING is over: it serves again. In other stages this does nothing. */
void notes_go_on_serving(struct notes *n);
/* At a handover: from now on another process may serve the sockets of @worker, and ends them. One worker at a time. */
void notes_share(struct notes *n, unsigned worker);
/* The same, in the process that takes it: on @channel the other one says that it has no part in it any more. */
void notes_share_from(struct notes *n, unsigned worker, int channel);
/* The process has all sockets for itself. */
void notes_share_nothing(struct notes *n);
void notes_beat(struct notes *n, unsigned thread);
/* For the start of the process: any thread may do the work. */
void notes_beat_all(struct notes *n);
uint64_t notes_deaths(const struct notes *n);
/* The calling thread has number @thread. If it crashes, the keeper and the next process learn that. */
void notes_enter_thread(struct notes *n, unsigned thread);

/* The caller keeps @fd. 0, CSSL_E_TOO_LONG, or CSSL_E_NO_MEMORY: more sockets than notes_create() was told. */
int notes_add_socket(struct notes *n, const char *key, unsigned worker, int fd);

/* In the process after a death: how many sockets are noted; never more than the room for them. */
uint32_t notes_socket_count(const struct notes *n);
/* The same, before its threads run: what worker @worker worked on (@working) when the process before crashed or hung in
 * that worker. NULL: nothing, or another thread is to blame. It may be any address. */
const void *notes_blamed(const struct notes *n, unsigned worker);
/* The worker was using bytes of the client at @address: it becomes a suspect, and this is logged. */
void notes_suspect(struct notes *n, const struct client_address *address);

/* A number of SOL_SOCKET; -1: it is no socket. */
int notes_socket_option(int fd, int name);
/* false: the descriptor was closed, or the number is another one now. */
bool notes_socket_listens(const struct noted_socket *s);

const char *death_cause_name(enum death_cause cause);
