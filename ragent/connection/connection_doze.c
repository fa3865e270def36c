/* connection_doze.c: what a silent connection does without, be it at rest or an agent's. Once nothing is left over,
 * neither records nor bytes for the client nor anybody who waits for it, its descriptor goes into the worker's dormant
 * set, and its struct awake goes back. Whatever comes on the descriptor, or has to be said to the client, gives it
 * another.
 *
 * Falling asleep waits for the end of the turn: so who holds a connection in a callback finds it as it was.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/container_of.h"
#include "net/dormant.h"
#include "proto/error.h"
#include "ragent/connection/connection_internal.h"

struct kept connection_kept(const struct connection *c)
{
	const uint64_t records = c->position.client_records;

	if (c->awake)
		return c->awake->kept;
	return (struct kept){ .first_record = records, .consumed_record = records, .next_record = records };
}

static int is_done_with(const struct kept *k, const struct position *p)
{
	return !k->data && k->next_record == p->client_records;
}

static int is_in_order(const struct connection *c)
{
	if (c->tail != TAIL_NONE || c->server_side != SERVER_OPEN || c->reading != CLIENT_READING)
		return 0;
	return c->state == CONNECTION_OWNED || (c->state == CONNECTION_RESTING && !connection_needs_owner(c));
}

static int is_exposed(const struct exposure *e, const struct position *p)
{
	return e->losses || e->silent || e->records > p->checkpoint.client_records;
}

static int leaves_nothing_over(const struct connection *c)
{
	const struct awake *a = c->awake;

	if (!is_in_order(c) || is_exposed(&a->exposure, &c->position))
		return 0;
	if (a->frozen.link || a->order || a->download || a->partial.prev || a->waiter.prev || a->pause_began_ms ||
		a->move_answer != MOVE_ANSWER_NOT_DUE)
		return 0;
	return is_done_with(&a->kept, &c->position) && a->client.state == STREAM_OPEN && !stream_kept(&a->client) &&
	       !stream_pending(&a->client);
}

static void doze(struct connection *c)
{
	struct awake *a = c->awake;
	int fd = stream_dup_fd(&a->client);

	if (fd >= 0 && dormant_add(c->home->dormant, fd, c) < 0) {
		close(fd);
		fd = -1;
	}
	if (fd < 0) { /* then it stays awake */
		stream_read_start(&a->client);
		return;
	}
	c->fd = fd;
	holdings_set(&c->home->holdings, &a->holding, 0);
	c->awake = NULL;
	a->connection = NULL;
	deadline_cancel(&a->later);
	stream_close(&a->client);
}

static void on_turn_end(struct turn_end *t)
{
	struct awake *a = container_of(t, struct awake, fall_asleep);

	if (leaves_nothing_over(a->connection))
		doze(a->connection);
}

void connection_may_doze(struct connection *c)
{
	if (c->awake)
		worker_at_turn_end(c->home->worker, &c->awake->fall_asleep);
}

size_t connection_awake_len(void)
{
	return sizeof(struct awake);
}

int connection_make_awake(struct connection *c)
{
	struct awake *a = slabs_take(&c->home->awake);

	if (!a)
		return CSSL_E_NO_MEMORY;
	*a = (struct awake){ .connection = c };
	a->home = c->home;
	a->fall_asleep.fn = on_turn_end;
	a->later.fn = connection_on_later;
	a->waiter.fn = connection_on_waiter;
	c->awake = a;
	return 0;
}

void connection_free_awake(struct connection *c)
{
	if (!c->awake)
		return;
	turn_end_cancel(&c->awake->fall_asleep);
	handshake_limit_leave(c->home->handshakes, &c->awake->place);
	holdings_set(&c->home->holdings, &c->awake->holding, 0);
	deadline_cancel(&c->awake->later);
	slabs_give(&c->home->awake, c->awake);
	c->awake = NULL;
}

int connection_rouse(struct connection *c)
{
	if (c->awake)
		return 0;
	const struct kept kept = connection_kept(c);
	int r = connection_make_awake(c);
	if (r < 0)
		return r;
	int fd = c->fd;
	dormant_remove(c->home->dormant, fd, c);
	c->fd = -1;
	r = stream_open_fd(&c->awake->client, c->home->worker, &connection_client_ops, fd);
	if (r < 0) {
		connection_free_awake(c);
		return r;
	}
	c->awake->kept = kept;
	connection_begin_reading(c);
	if (c->state == CONNECTION_OWNED) /* to fall asleep again, whatever this is for */
		connection_arm_deadline(c);
	return 0;
}

int connection_rouse_or_end(struct connection *c)
{
	int r = connection_rouse(c);

	if (r < 0)
		connection_end(c, END_INTERNAL, END_RESET);
	return r;
}

void connection_on_stir(void *holder)
{
	connection_rouse_or_end(holder);
}

/* As everywhere its memory goes later: whoever ends it may hold it. */
void connection_close_dozing(struct connection *c)
{
	if (c->fd >= 0) {
		dormant_remove(c->home->dormant, c->fd, c);
		close(c->fd);
	}
	c->fd = -1;
	connection_set_deadline(c, 0);
}

void connection_reset_dozing(struct connection *c)
{
	const struct linger reset = { .l_onoff = 1 };

	if (c->fd >= 0)
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	connection_close_dozing(c);
}
