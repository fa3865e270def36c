/* link_second.c: while an agent is silent, try a second connection to it. If that is answered, the agent lives, and the
 * first connection is broken: the network was cut, and TCP waits longer and longer until it sends again. Then the first
 * one is given up, and the link opens again at once. Its streams go on (proto/frame.h: REATTACH), and no agent has to
 * take over. A UNIX socket cannot break, so its silence says nothing else.
 *
 * The agent's main thread answers the second connection, so it says nothing of the worker behind the link. A worker
 * sends a frame as soon as it has a link. If none came since the link is up, the worker hangs: nothing is tried, and
 * the agent is lost in time.
 */
#include <unistd.h>

#include "net/container_of.h"
#include "net/log.h"
#include "ragent/link/link_internal.h"

#define SECOND_LIMIT_MS 250u /* a new connection is tried sooner than TCP repeats the first packet of this one */

static struct link *link_of_second(struct link_opening *o)
{
	return container_of(o, struct link, opening);
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void on_opened(struct link_opening *o, const struct link_opened *opened)
{
	struct link *l = link_of_second(o);

	close_if_open(opened->fd);
	close_if_open(opened->memory);
	close_if_open(opened->pidfd);
	link_opening_close(o);
	if (l->state == LINK_SUSPECT)
		link_fail(l, LINK_BROKEN);
}

static void on_failed(struct link_opening *o, int error)
{
	link_opening_close(o);
}

static void on_closed(struct link_opening *o)
{
	struct link *l = link_of_second(o);

	l->second = LINK_ALONE;
	link_handle_closed(l);
}

static const struct link_opening_ops second_ops = {
	.on_opened = on_opened,
	.on_failed = on_failed,
	.on_closed = on_closed,
};

void link_try_second(struct link *l)
{
	if (l->state != LINK_SUSPECT || l->second == LINK_BESIDE || l->ear == LINK_HEARD_NOTHING ||
		l->p.agent->link.ss_family == AF_UNIX || !link_outlived(l))
		return;
	if (link_opening_begin(
		    &l->opening, l->p.worker, &second_ops, l->p.agent, l->p.ring, &l->p.hello, SECOND_LIMIT_MS) < 0)
		return;
	l->second = LINK_BESIDE;
	l->handles++;
}
