/* link.c: one link and its life. Whatever ends it (end of stream, silence, a broken frame, no memory) only notes the
 * cause; the loss itself happens at the end of the loop turn, when no caller further up the stack is in the middle of
 * something with one of its streams.
 */
#include "ragent/link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/framed.h"
#include "net/log.h"
#include "net/streams.h"
#include "proto/error.h"
#include "proto/wire.h"
#include "ragent/link_opening.h"

#define BACKOFF_FIRST_MS 50u
#define BACKOFF_MAX_MS   2000u
#define OUTPUT_LIMIT     (1024u * 1024u)
#define STREAM_IDS_END   UINT32_MAX /* the link is replaced before they run out */

enum link_wish { LINK_TO_STAY, LINK_TO_GO };

struct link {
	struct link_params p;
	struct framed framed;
	struct link_opening opening;
	struct streams streams;
	struct link_waiter *waiters;
	struct turn_end losing;
	struct deadline connect; /* WAITING */
	struct link_hello peer;
	uint64_t heard_ms, ticked_ms;
	uint32_t backoff_ms;
	uint32_t next_stream;
	int failure;     /* why it will be lost at the end of this turn */
	uint8_t state;   /* enum link_state */
	uint8_t wish;    /* enum link_wish */
	uint8_t handles; /* opening and framed: opened and not yet closed */
};

#define TO(name) (1u << LINK_##name)

static const struct {
	const char *name;
	unsigned may_go_to;
} state_rows[LINK_STATE_COUNT] = {
	[LINK_WAITING] = { "waiting", TO(OPENING) | TO(LOSING) },
	[LINK_OPENING] = { "opening", TO(UP) | TO(LOSING) },
	[LINK_UP] = { "up", TO(SUSPECT) | TO(LOSING) },
	[LINK_SUSPECT] = { "suspect", TO(UP) | TO(LOSING) },
	[LINK_LOSING] = { "losing", TO(WAITING) | TO(CLOSED) },
	[LINK_CLOSED] = { "closed", 0 },
};

const char *link_state_name(enum link_state s)
{
	return state_rows[s].name;
}

static int is_open(const struct link *l)
{
	return l->state == LINK_UP || l->state == LINK_SUSPECT;
}

static void move(struct link *l, enum link_state to)
{
	enum link_state from = l->state;

	assert(state_rows[from].may_go_to & (1u << to));
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

/* Every handle is closed. */
static void settle(struct link *l)
{
	if (l->wish == LINK_TO_GO) {
		move(l, LINK_CLOSED);
		l->p.ops->on_closed(l->p.ctx, l);
		return;
	}
	l->failure = 0;
	move(l, LINK_WAITING);
	uint32_t jitter = randombytes_uniform(l->backoff_ms / 2 + 1);
	deadline_set(l->p.worker, &l->connect, l->backoff_ms - l->backoff_ms / 4 + jitter);
	l->backoff_ms = l->backoff_ms * 2 < BACKOFF_MAX_MS ? l->backoff_ms * 2 : BACKOFF_MAX_MS;
}

static void log_loss(const struct link *l)
{
	const char *cause = l->failure > -20000 ? uv_strerror(l->failure) : cssl_strerror(l->failure);

	if (l->wish == LINK_TO_GO)
		return;
	if (is_open(l)) {
		counter_add(&l->p.counters->links_lost, 1);
		log_event(LOG_WARNING, NULL, "link lost", "agent=%s worker=%u streams=%u cause=%s", l->p.agent->name,
			l->p.agent_worker, l->streams.count, cause);
		return;
	}
	counter_add(&l->p.counters->openings_failed, 1);
	/* that nobody listens says the agent's state; that somebody does but cannot open is for the operator */
	enum log_level level = l->opening.opening ? LOG_WARNING : LOG_DEBUG;
	log_event(level, NULL, "link not opened", "agent=%s worker=%u cause=%s", l->p.agent->name, l->p.agent_worker,
		cause);
}

static void lose(struct link *l)
{
	struct streams lost = l->streams;

	log_loss(l);
	turn_end_cancel(&l->losing);
	deadline_cancel(&l->connect);
	l->streams = (struct streams){ 0 };
	while (l->waiters)
		link_wait_cancel(l->waiters);
	move(l, LINK_LOSING);
	streams_each(&lost, on_stream_lost, l);
	streams_clear(&lost);
	link_opening_close(&l->opening);
	if (l->framed.ops)
		framed_close(&l->framed);
	if (l->handles == 0)
		settle(l);
}

static void on_losing(struct turn_end *t)
{
	lose((struct link *)((char *)t - offsetof(struct link, losing)));
}

/* It will be lost at the end of this turn. */
static void fail(struct link *l, int error)
{
	if (l->failure || l->state == LINK_LOSING || l->state == LINK_CLOSED)
		return;
	l->failure = error;
	worker_at_turn_end(l->p.worker, &l->losing);
}

static void handle_closed(struct link *l)
{
	l->handles--;
	if (l->handles == 0 && l->state == LINK_LOSING)
		settle(l);
}

/* --- frames in --- */

static int in_ping(struct link *l, const struct frame *f)
{
	return link_send(l, 0, FRAME_PONG, 0, f->payload, f->len);
}

static int in_pong(struct link *l, const struct frame *f)
{
	return 0; /* that it came is what counts: on_turn */
}

static int in_load(struct link *l, const struct frame *f)
{
	Cssl__LinkLoad *load = cssl__link_load__unpack(NULL, f->len, f->payload);

	if (!load)
		return CSSL_E_TRUNCATED;
	l->p.ops->on_load(l->p.ctx, l, load);
	cssl__link_load__free_unpacked(load, NULL);
	return 0;
}

static int in_leaving(struct link *l, const struct frame *f)
{
	l->p.ops->on_leaving(l->p.ctx, l);
	return 0;
}

static int in_response(struct link *l, const struct frame *f)
{
	Cssl__LinkResponse *response = cssl__link_response__unpack(NULL, f->len, f->payload);

	if (!response)
		return CSSL_E_TRUNCATED;
	l->p.ops->on_response(l->p.ctx, l, response);
	return 0;
}

static int (*const link_frames[256])(struct link *l, const struct frame *f) = {
	[FRAME_PING] = in_ping,
	[FRAME_PONG] = in_pong,
	[FRAME_LOAD] = in_load,
	[FRAME_LEAVING] = in_leaving,
	[FRAME_RESPONSE] = in_response,
};

static struct link *link_of_framed(struct framed *f)
{
	return (struct link *)((char *)f - offsetof(struct link, framed));
}

static int on_frame(struct framed *f, const struct frame *frame, uint8_t *payload)
{
	struct link *l = link_of_framed(f);
	int r;

	if (l->failure)
		return 0; /* nothing counts any more */
	if (frame->stream == 0) {
		r = link_frames[frame->type] ? link_frames[frame->type](l, frame) : CSSL_E_TYPE;
	} else {
		void *holder = streams_find(&l->streams, frame->stream);
		if (!holder)
			counter_add(&l->p.counters->frames_stale, 1);
		r = holder ? l->p.ops->on_frame(holder, l, frame) : 0;
	}
	if (r < 0) {
		counter_add(&l->p.counters->link_violations, 1);
		log_event(LOG_ERROR, NULL, "link violation", "agent=%s worker=%u frame=%s stream=%u cause=%s",
			l->p.agent->name, l->p.agent_worker, frame_type_name(frame->type), frame->stream,
			cssl_strerror(r));
		fail(l, r);
	}
	return r;
}

static void wake_waiters(struct link *l)
{
	while (l->waiters && !link_full(l)) {
		struct link_waiter *w = l->waiters;
		link_wait_cancel(w);
		w->fn(w);
	}
}

static void on_turn(struct framed *f)
{
	struct link *l = link_of_framed(f);

	l->heard_ms = worker_now_ms(l->p.worker);
	if (l->failure)
		return;
	if (l->state == LINK_SUSPECT)
		move(l, LINK_UP);
	wake_waiters(l);
}

static void on_framed_end(struct framed *f, int error)
{
	fail(link_of_framed(f), error);
}

static void on_framed_closed(struct framed *f)
{
	struct link *l = link_of_framed(f);

	f->ops = NULL;
	fail(l, CSSL_E_NO_MEMORY); /* unless it is being lost already: it could not even begin */
	handle_closed(l);
}

static const struct framed_ops framed_ops = {
	.on_frame = on_frame,
	.on_turn = on_turn,
	.on_end = on_framed_end,
	.on_closed = on_framed_closed,
};

/* --- opening --- */

static struct link *link_of_opening(struct link_opening *o)
{
	return (struct link *)((char *)o - offsetof(struct link, opening));
}

static void on_opened(struct link_opening *o, const struct link_opened *opened)
{
	struct link *l = link_of_opening(o);
	int r = framed_open(
		&l->framed, l->p.worker, &framed_ops, opened->fd, opened->keys, opened->early, opened->early_len);

	link_opening_close(o);
	if (r < 0) {
		l->framed.ops = NULL;
		fail(l, r);
		return;
	}
	l->handles++;
	stream_set_lost_limit(&l->framed.stream, l->p.health.lost_ms);
	stream_set_fault(&l->framed.stream, "link", l->p.agent->name);
	l->peer = *opened->peer;
	l->backoff_ms = BACKOFF_FIRST_MS;
	l->next_stream = 1;
	l->heard_ms = l->ticked_ms = worker_now_ms(l->p.worker);
	log_event(LOG_INFO, NULL, "link up", "agent=%s worker=%u", l->p.agent->name, l->p.agent_worker);
	move(l, LINK_UP);
	link_tick(l);
}

static void on_opening_failed(struct link_opening *o, int error)
{
	fail(link_of_opening(o), error);
}

static void on_opening_closed(struct link_opening *o)
{
	handle_closed(link_of_opening(o));
}

static const struct link_opening_ops opening_ops = {
	.on_opened = on_opened,
	.on_failed = on_opening_failed,
	.on_closed = on_opening_closed,
};

static void on_connect_due(struct deadline *d)
{
	struct link *l = (struct link *)((char *)d - offsetof(struct link, connect));

	move(l, LINK_OPENING);
	int r = link_opening_begin(
		&l->opening, l->p.worker, &opening_ops, l->p.agent, l->p.ring, &l->p.hello, l->p.health.lost_ms);
	if (r < 0)
		fail(l, r);
	else
		l->handles++;
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
	l->backoff_ms = BACKOFF_FIRST_MS;
	l->losing.fn = on_losing;
	l->connect.fn = on_connect_due;
	deadline_set(p->worker, &l->connect, 0);
	return l;
}

void link_close(struct link *l)
{
	if (l->wish == LINK_TO_GO)
		return;
	l->wish = LINK_TO_GO;
	if (l->state != LINK_LOSING)
		fail(l, UV_ECANCELED);
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
	/* When this process itself did not run (stopped, no CPU), the silence was ours. */
	if (since_ms > 2 * (uint64_t)l->p.health.ping_ms)
		l->heard_ms += since_ms < now_ms - l->heard_ms ? since_ms : now_ms - l->heard_ms;
	uint64_t silent_ms = now_ms - l->heard_ms;
	if (silent_ms >= l->p.health.lost_ms) {
		fail(l, UV_ETIMEDOUT);
		return;
	}
	if (l->state == LINK_UP && silent_ms >= l->p.health.suspect_ms)
		move(l, LINK_SUSPECT);
	struct wire_writer w = wire_writer(token, sizeof token);
	wire_put_u64(&w, now_ms);
	link_send(l, 0, FRAME_PING, 0, token, sizeof token);
	wake_waiters(l);
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

int link_open(const struct link *l)
{
	return is_open(l) && !l->failure;
}

/* --- streams and frames out --- */

uint32_t link_stream_begin(struct link *l, void *holder)
{
	if (l->next_stream == STREAM_IDS_END) {
		fail(l, CSSL_E_EXHAUSTED);
		return 0;
	}
	if (streams_add(&l->streams, l->next_stream, holder) < 0)
		return 0;
	return l->next_stream++;
}

void link_stream_end(struct link *l, uint32_t stream)
{
	streams_remove(&l->streams, stream);
}

uint8_t *link_reserve(struct link *l, size_t cap)
{
	if (!link_open(l))
		return NULL;
	uint8_t *room = framed_reserve(&l->framed, cap);
	if (!room)
		fail(l, CSSL_E_NO_MEMORY);
	return room;
}

void link_commit(struct link *l, uint32_t stream, enum frame_type type, uint8_t flags, size_t len)
{
	framed_commit(&l->framed, stream, type, flags, len);
}

int link_send(struct link *l, uint32_t stream, enum frame_type type, uint8_t flags, const void *payload, size_t len)
{
	uint8_t *room = link_reserve(l, len);

	if (!room)
		return CSSL_E_STATE;
	if (len)
		memcpy(room, payload, len);
	link_commit(l, stream, type, flags, len);
	return 0;
}

int link_send_message(struct link *l, uint32_t stream, enum frame_type type, const ProtobufCMessage *message)
{
	size_t len = protobuf_c_message_get_packed_size(message);

	if (len > FRAME_PAYLOAD_MAX)
		return CSSL_E_TOO_LONG;
	uint8_t *room = link_reserve(l, len);
	if (!room)
		return CSSL_E_STATE;
	protobuf_c_message_pack(message, room);
	link_commit(l, stream, type, 0, len);
	return 0;
}

int link_full(const struct link *l)
{
	return framed_pending(&l->framed) >= OUTPUT_LIMIT;
}

void link_wait(struct link *l, struct link_waiter *w)
{
	struct link_waiter **last = &l->waiters;

	if (w->prev)
		return;
	while (*last)
		last = &(*last)->next;
	w->next = NULL;
	w->prev = last;
	*last = w;
}

void link_wait_cancel(struct link_waiter *w)
{
	if (!w->prev)
		return;
	*w->prev = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->next = NULL;
	w->prev = NULL;
}
