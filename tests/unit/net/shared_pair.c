/* shared_pair.c: see shared_pair.h. */
#include <fcntl.h>

#include "shared_pair.h"

int duplicate(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	ck_assert_int_ge(copy, 0);
	return copy;
}

void shared_open(struct owner *o, int fd, int memory, enum rings_side side)
{
	owner_init(o);
	ck_assert_int_eq(stream_open_fd(&o->s, w, &owner_ops, fd), 0);
	ck_assert_int_eq(stream_share(&o->s, memory, side), 0);
	stream_read_start(&o->s);
}

void shared_pair_open(struct owner *near, struct owner *far)
{
	int fds[2], memory = rings_make();

	ck_assert_int_ge(memory, 0);
	socket_pair(OVER_UNIX, fds);
	shared_open(near, fds[0], duplicate(memory), RINGS_MAKER);
	shared_open(far, fds[1], memory, RINGS_TAKER);
}

void shared_pair_finish(struct owner *near, struct owner *far)
{
	owner_finish(near);
	owner_finish(far);
}
