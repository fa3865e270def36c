/* fixture.h: a worker in the test's own thread, sockets for the other side, and waiting for a state. */
#pragma once

#include <check.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net/loop/worker.h"

/* Ends a wait that would never end; no test depends on its length. */
#define WAIT_LIMIT_MS 20000u

/* Check's: create and destroy the worker below. Destroying asserts that every handle was closed. */
void setup_worker(void);
void teardown_worker(void);
extern struct worker *w;

/* Turn the loop until @condition. */
#define wait_until(condition)                                                                                          \
	do {                                                                                                           \
		uint64_t limit_ = now_ms() + WAIT_LIMIT_MS;                                                            \
		while (!(condition)) {                                                                                 \
			ck_assert_msg(now_ms() < limit_, "never: %s", #condition);                                     \
			turn();                                                                                        \
		}                                                                                                      \
	} while (0)

uint64_t now_ms(void);
void turn(void); /* one loop turn; sleeps a little when there is nothing to do */
void turns(unsigned count);

enum transport { OVER_TCP4, OVER_TCP6, OVER_UNIX, TRANSPORTS };

/* A connected pair; both non-blocking and close-on-exec. */
void socket_pair(enum transport over, int fds[2]);
/* A listening socket on a free port of the loopback, or a fresh path. */
int socket_listen(enum transport over, struct sockaddr_storage *address);
/* A stopped reader at the other end can take no more than this. */
void shrink_buffers(int fd);
/* Close with a reset; on a UNIX socket unread data does that. */
void reset(enum transport over, int fd);

/* All bytes that are there, up to @cap; -1: reset, 0: nothing (*end: EOF). */
ssize_t read_some(int fd, void *out, size_t cap, int *end);
/* Turn the loop until exactly @len bytes came on @fd. */
void read_exactly(int fd, void *out, size_t len);
/* Turn the loop until @fd gives EOF (0) or a reset (-1). The bytes before are thrown away. */
int read_to_end(int fd);
void write_all(int fd, const void *data, size_t len);

/* A directory of this test's own. check_dir_remove() removes it with its contents. */
const char *temp_dir(void);
void temp_dir_remove(void);

unsigned open_descriptors(void);

/* Run @facts, each with a worker of its own; the process's exit status. */
int worker_suite_run(const char *name, const TTest *const *facts, size_t count);
#define FACTS_LEN(facts) (sizeof(facts) / sizeof(facts)[0])
