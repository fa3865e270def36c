/* shared_pair.h: two streams on one loop whose bytes go through shared memory. */
#pragma once

#include "owner.h"

/* Open over a UNIX socket pair, reading; @near is the memory's maker. */
void shared_pair_open(struct owner *near, struct owner *far);
/* Open @o on @fd, reading, with @memory. Both are its own from now on. */
void shared_open(struct owner *o, int fd, int memory, enum rings_side side);
void shared_pair_finish(struct owner *near, struct owner *far);
int duplicate(int fd);
