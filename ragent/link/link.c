/* link.c: one link and its life. Each event that ends it (end of stream, silence, a broken frame, no memory) only notes
 * the cause. The loss itself follows at the end of the loop turn, when no caller on the stack still works with one of
 * its streams.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/loop/watch.h"
#include "net/memory/container_of.h"
#include "net/report/error_text.h"
#include "net/report/log.h"
#include "proto/wire.h"
#include "ragent/link/link_handover.h"
#include "ragent/link/link_internal.h"

#define BACKOFF_FIRST_MS 50u
#define BACKOFF_MAX_MS   500u
#define DEATH_WAIT_MS    100u

#define TO(name) (1u << LINK_##name)

static const struct {
	const char *name;
	unsigned may_go_to;
} state_rows[LINK_STATE_COUNT] = {
	[LINK_WAITING] = { "waiting", TO(OPENING) | TO(UP) | TO(LOSING) },
	[LINK_OPENING] = { "opening", TO(UP) | TO(LOSING) },
	[LINK_UP] = { "up", TO(SUSPECT) | TO(LOSING) },
	[LINK_SUSPECT] = { "suspect", TO(UP) | TO(LOSING) },
	[LINK_LOSING] = { "losing", TO(WAITING) | TO(CLOSED) },
	[LINK_CLOSED] = { "closed", 0 },
};

bool link_may_go(enum link_state from, enum link_state to)
{
	return (state_rows[from].may_go_to >> to) & 1;
}

static bool link_up(const struct link *l)
{
	return l->state == LINK_UP || l->state == LINK_SUSPECT;
}

static void link_move(struct link *l, enum link_state to)
{
	enum link_state from = l->state;

	assert(link_may_go(from, to));
	l->state = (uint8_t)to;
	log_event(LOG_DEBUG, NULL, "link state", "agent=%s worker=%u from=%s to=%s", l->p.agent->name,
		l->p.agent_worker, state_rows[from].name, state_rows[to].name);
	l->p.ops->on_state(l->p.ctx, l, from, to);
}

/* --- loss --- */

static void on_stream_lost(void *ctx, uint32_t id, void *holder)
{
	struct link *l = ctx;

	l->p.ops->on_stream_lost(holder, l, id);
}

static uint32_t link_longer_backoff(uint32_t backoff_ms)
{
	if (backoff_ms == 0)
		return BACKOFF_FIRST_MS;
	return backoff_ms * 2 < BACKOFF_MAX_MS ? backoff_ms * 2 : BACKOFF_MAX_MS;
}

/* Every handle is closed. */
static void link_handles_closed(struct link *l)
{
	if (l->wish == LINK_TO_GO) {
		link_move(l, LINK_CLOSED);
		l->p.ops->on_closed(l->p.ctx, l);
		return;
	}
	l->failure = 0;
	link_move(l, LINK_WAITING);
	if (l->wish == LINK_TO_WAIT)
		return;
	uint32_t jitter = randombytes_uniform(l->backoff_ms / 2 + 1);
	deadline_set(l->p.worker, &l->connect, l->backoff_ms - l->backoff_ms / 4 + jitter);
	l->backoff_ms = link_longer_backoff(l->backoff_ms);
}

static void log_loss(const struct link *l)
{
	const char *cause = error_text(l->failure);

	if (l->wish != LINK_TO_STAY)
		return;
	if (link_up(l)) {
		counter_add(&l->p.counters->links_lost, 1);
		log_event(LOG_WARNING, NULL, "link lost", "agent=%s worker=%u streams=%u cause=%s", l->p.agent->name,
			l->p.agent_worker, l->streams.count, cause);
		return;
	}
	counter_add(&l->p.counters->openings_failed, 1);
	/* A refused connect is normal while an agent is down. After a failed opening, or without permission for the
	 * socket, the operator has to act. */
	enum log_level level = l->opening.opening || l->failure == UV_EACCES ? LOG_WARNING : LOG_DEBUG;
	log_event(level, NULL, "link not opened", "agent=%s worker=%u cause=%s", l->p.agent->name, l->p.agent_worker,
		cause);
}

static void stop_awaiting_death(struct link *l)
{
	watch_stop(l->death);
	l->death = NULL;
	deadline_cancel(&l->death_due);
}

static void link_lose(struct link *l)
{
	struct streams lost = l->streams;

	log_loss(l);
	if (link_up(l))
		l->fate = (uint8_t)peer_process_fate(&l->process);
	if (link_up(l) && lost.count && link_comes_again(l))
		l->backoff_ms = 0;
	stop_awaiting_death(l);
	peer_process_forget(&l->process);
	turn_end_cancel(&l->losing);
	deadline_cancel(&l->connect);
	l->streams = (struct streams){ 0 };
	link_forget_waiters(l);
	link_move(l, LINK_LOSING);
	streams_each(&lost, on_stream_lost, l);
	streams_clear(&lost);
	link_opening_close(l);
	if (l->framed.ops)
		framed_close(&l->framed);
	if (l->handles == 0)
		link_handles_closed(l);
}

static void on_death(void *ctx)
{
	link_lose(ctx);
}

/* The process lives: it has only ended this link. */
static void on_no_death(struct deadline *d)
{
	link_lose(container_of(d, struct link, death_due));
}

/* The connection has ended, and the process may end next: the kernel closes the descriptors of a killed process before
 * its last thread is gone. Only then its death is proved, microseconds later on an idle host. The fate of its requests
 * depends on that, so wait for it. false: there is nothing to wait for. */
static bool await_death(struct link *l)
{
	const bool ended = l->failure == UV_EOF || l->failure == UV_EPIPE || l->failure == UV_ECONNRESET;
	const int fd = peer_process_fd(&l->process);

	if (!link_up(l) || !ended || l->wish != LINK_TO_STAY || fd < 0 || peer_process_fate(&l->process) == PEER_DEAD)
		return false;
	l->death = watch_start(l->p.worker, fd, on_death, l);
	if (!l->death)
		return false;
	deadline_set(l->p.worker, &l->death_due, DEATH_WAIT_MS);
	return true;
}

static void on_losing(struct turn_end *t)
{
	struct link *l = container_of(t, struct link, losing);

	if (!await_death(l))
		link_lose(l);
}

bool link_settle(struct link *l)
{
	if (!l->failure || l->state == LINK_LOSING || l->state == LINK_CLOSED)
		return false;
	link_lose(l);
	return true;
}

void link_fail(struct link *l, int error)
{
	if (l->failure || l->state == LINK_LOSING || l->state == LINK_CLOSED)
		return;
	l->failure = error;
	worker_at_turn_end(l->p.worker, &l->losing);
}

void link_handle_closed(struct link *l)
{
	l->handles--;
	if (l->handles == 0 && l->state == LINK_LOSING)
		link_handles_closed(l);
}

void link_heard(struct link *l)
{
	l->heard_ms = worker_now_ms(l->p.worker);
	l->ear = LINK_HEARD;
	if (l->state == LINK_SUSPECT && !l->failure)
		link_move(l, LINK_UP);
}

/* --- opening --- */

void link_on_up(struct link *l, const struct link_hello *peer)
{
	l->handles++;
	stream_set_lost_limit(&l->framed.stream, l->p.health.lost_ms);
	stream_set_fault(&l->framed.stream, "link", l->p.agent->name);
	l->peer = *peer;
	l->fate = PEER_FATE_UNKNOWN;
	l->backoff_ms = BACKOFF_FIRST_MS;
	l->heard_ms = l->ticked_ms = worker_now_ms(l->p.worker);
	l->ear = LINK_HEARD_NOTHING;
	l->cause_stream = 0;
	link_move(l, LINK_UP);
}

void link_on_open(struct link *l, int fd, const struct link_keys *keys)
{
	struct link_opening *o = &l->opening;
	const int memory = o->memory;

	l->process = peer_process_of(fd, o->pidfd);
	o->pidfd = -1;
	/* on a socket that has rings beside it, bytes are only bells */
	int r = framed_open(&l->framed, l->p.worker, &link_framed_ops, fd, keys, stream_kept_data(&o->stream),
		memory < 0 ? stream_kept(&o->stream) : 0);
	if (r < 0) {
		l->framed.ops = NULL;
		link_fail(l, r);
		return;
	}
	o->memory = -1;
	r = memory < 0 ? 0 : framed_share(&l->framed, memory, RINGS_MAKER); /* before the first frame */
	l->next_stream = 1;
	link_on_up(l, opening_peer(o->opening));
	if (r < 0)
		link_fail(l, r);
	log_event(LOG_INFO, NULL, "link up", "agent=%s worker=%u bytes=%s", l->p.agent->name, l->p.agent_worker,
		memory < 0 ? "socket" : "memory");
	link_tick(l);
}

static void on_connect_due(struct deadline *d)
{
	struct link *l = container_of(d, struct link, connect);

	link_move(l, LINK_OPENING);
	int r = link_opening_begin(l, l->p.health.lost_ms);
	if (r < 0)
		link_fail(l, r);
}

/* --- life --- */

struct link *link_create(const struct link_params *p)
{
	struct link *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	l->p = *p;
	l->p.hello.target_worker = (uint16_t)p->agent_worker;
	l->state = LINK_WAITING;
	l->waiters.next = l->waiters.prev = &l->waiters;
	l->backoff_ms = BACKOFF_FIRST_MS;
	l->losing.fn = on_losing;
	l->connect.fn = on_connect_due;
	l->death_due.fn = on_no_death;
	deadline_set(p->worker, &l->connect, 0);
	return l;
}

void link_close(struct link *l)
{
	if (l->wish == LINK_TO_GO)
		return;
	l->wish = LINK_TO_GO;
	if (l->state != LINK_LOSING)
		link_fail(l, UV_ECANCELED);
}

void link_leave(struct link *l)
{
	if (l->wish != LINK_TO_STAY)
		return;
	l->wish = LINK_TO_WAIT;
	deadline_cancel(&l->connect);
	if (l->state == LINK_WAITING || l->state == LINK_LOSING)
		return;
	l->failure = UV_ECANCELED;
	link_lose(l);
}

void link_return(struct link *l)
{
	if (l->wish != LINK_TO_WAIT)
		return;
	l->wish = LINK_TO_STAY;
	if (l->state == LINK_WAITING)
		deadline_set(l->p.worker, &l->connect, 0);
}

void link_destroy(struct link *l)
{
	if (!l)
		return;
	assert(l->state == LINK_CLOSED || l->state == LINK_WAITING);
	deadline_cancel(&l->connect);
	streams_clear(&l->streams);
	free(l);
}

void link_tick(struct link *l)
{
	uint64_t now_ms = worker_now_ms(l->p.worker);
	uint64_t since_ms = now_ms - l->ticked_ms;
	uint8_t token[8];

	l->ticked_ms = now_ms;
	if (!link_open(l))
		return;
	/* This process itself did not run (stopped, no CPU): the agent was not silent. */
	if (since_ms > 2 * (uint64_t)l->p.health.ping_ms)
		l->heard_ms += since_ms < now_ms - l->heard_ms ? since_ms : now_ms - l->heard_ms;
	uint64_t silent_ms = now_ms - l->heard_ms;
	if (silent_ms >= l->p.health.lost_ms) {
		link_fail(l, UV_ETIMEDOUT);
		return;
	}
	if (l->state == LINK_UP && silent_ms >= l->p.health.suspect_ms)
		link_move(l, LINK_SUSPECT);
	struct wire_writer w = wire_writer(token, sizeof token);
	wire_put_u64(&w, now_ms);
	link_send(l, 0, FRAME_PING, 0, token, sizeof token);
	link_try_second(l);
	link_call_waiters(l);
}

enum link_state link_state(const struct link *l)
{
	return l->state;
}

int link_agent(const struct link *l)
{
	return l->p.agent_index;
}

unsigned link_agent_worker(const struct link *l)
{
	return l->p.agent_worker;
}

const struct link_hello *link_peer(const struct link *l)
{
	return &l->peer;
}

enum peer_fate link_fate(const struct link *l)
{
	return l->fate;
}

void link_lose_if_dead(struct link *l)
{
	if (link_open(l) && peer_process_fate(&l->process) == PEER_DEAD)
		link_fail(l, UV_ECONNRESET);
}

bool link_comes_again(const struct link *l)
{
	const bool broke = l->failure == UV_EOF || l->failure == UV_EPIPE || l->failure == UV_ECONNRESET ||
			   l->failure == LINK_BROKEN;

	return broke && l->wish == LINK_TO_STAY && l->fate != PEER_DEAD && link_outlived(l);
}

int link_failure(const struct link *l)
{
	return l->failure;
}

bool link_open(const struct link *l)
{
	return link_up(l) && !l->failure;
}
