/* group.h: clients that all do the same: what that is, and what became of them. */
#pragma once

#include <netinet/in.h>
#include <stdio.h>

#include "tests/lib/probe_args.h"
#include "tests/lib/tlsload/answer.h"
#include "tests/lib/tlsload/client.h"
#include "tests/lib/tlsload/tally.h"

#define GROUP_NAME_MAX 32u
#define PATH_MAX_LEN   128u

enum group_state {
	GROUP_ASKS,    /* each client asks again and again */
	GROUP_WAITS,   /* for the command `ask` */
	GROUP_STOPPED, /* answers under way are still read */
};

/* A command that is answered later, once nothing of it is under way. */
struct group_promise {
	enum { PROMISE_NONE, PROMISE_CONNECTED, PROMISE_QUIET } until;
	unsigned number; /* of the command */
};

struct group {
	struct group *next;
	struct load *load;
	char name[GROUP_NAME_MAX];
	enum group_state state;
	/* The settings of each client. */
	struct sockaddr_in to;
	unsigned sources; /* clients come from so many addresses, from 127.1.0.1 on; 0: any */
	unsigned count, every_ms, timeout_ms, times, key_update_every, at_once;
	unsigned head_every_ms;               /* a byte of each head; 0: all at once */
	unsigned keys_every_ms, keys_at_once; /* so many KeyUpdates, while nothing is asked; 0 ms: none */
	enum { VERSION_BOTH, VERSION_12, VERSION_13 } version;
	enum { AGAIN_NEVER, AGAIN_LOST, AGAIN_ALWAYS } again;
	enum { SESSION_FORGOTTEN, SESSION_OFFERED } session;
	char method[8], path[PATH_MAX_LEN], id[GROUP_NAME_MAX];
	uint64_t body, rate; /* of a request: bytes of pattern, and how many a second */
	uint64_t stall_at, stall_ms;
	struct expectation expected; /* EXPECT_PATTERN; what is text each client knows */
	char sha256[65];             /* of the body */
	FILE *ids;                   /* what became of each request that had an id */
	/* The state of the group. */
	unsigned in_state[CLIENT_STATES];
	unsigned unborn;    /* clients that have not tried yet */
	unsigned newcomers; /* that have not yet shaken hands once nor given up */
	struct client *clients;
	struct group_promise promise;
	struct tally tally;
};

/* From the arguments of `add` (main.c lists them). NULL: @wrong says why. */
struct group *group_create(struct load *load, struct probe_args *args, const char **wrong);
void group_destroy(struct group *g);

/* A few more connect when there is room for their handshakes. */
void group_admit(struct group *g);
/* All clients that are ready ask once. Returns their number. */
unsigned group_ask(struct group *g);
void group_stop(struct group *g);
void group_close(struct group *g);
/* Checks whether the promise is fulfilled. */
int group_kept_promise(const struct group *g);
json_t *group_json(const struct group *g);
