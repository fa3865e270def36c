/* handover_giver.c: the conversation with the new process; it gives one worker at a time.
 *
 * No message of the new process can do harm: after any failure before COMMIT the worker goes on, because giving
 * destroys nothing. When the new process ends after it took some of the workers, their connections are lost, but not
 * the service: these workers begin again on the listening sockets, which are still here.
 */
#include "ragent/handover/handover_giver.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/loop/listener.h"
#include "net/loop/watch.h"
#include "net/memory/container_of.h"
#include "net/points/fault.h"
#include "net/report/error_text.h"
#include "net/report/log_pace.h"
#include "proto/error.h"
#include "ragent/handover/handover_offer.h"
#include "ragent/handover/handover_worker.h"
#include "ragent/keeper/notes.h"

#define BACKLOG        4
#define SOCKET_MODE    0600u
#define TALK_LIMIT_MS  1000u /* for a message that was begun; the main loop waits for its end */
#define HELLO_MS       250u  /* for the first message; a silent process gives way to the next one */
#define UNREAD_MORE_MS 10u
#define GIVE_LIMIT_MS  2000u /* for the answer to one message; clients and agents wait meanwhile */
#define LATER_MS       20u
#define GIVE_AHEAD     4u /* messages under way: one side packs while the other unpacks */

#define GIVE_LATER 1 /* a result */

#define TO(name) (1u << GIVER_##name)

static const struct {
	const char *name;
	unsigned may_go_to;
} state_rows[GIVER_STATE_COUNT] = {
	[GIVER_ALONE] = { "alone", TO(GREETED) },
	[GIVER_GREETED] = { "greeted", TO(OFFERED) | TO(ALONE) },
	[GIVER_OFFERED] = { "offered", TO(GIVING) | TO(ALONE) | TO(REPLACED) },
	[GIVER_GIVING] = { "giving", TO(OFFERED) | TO(ALONE) },
	[GIVER_REPLACED] = { "replaced", 0 },
};

struct handover_giver {
	struct handover_giver_params p;
	struct listener *listener;
	struct watch *watch;       /* of @fd */
	struct deadline hello_due; /* GREETED */
	uint32_t greeted_turn;     /* the loop turn in which the process came */
	char *path;
	struct listener_file file;
	int fd; /* to the other process; -1: none */
	enum giver_state state;
	unsigned given; /* workers, from the first on */
	int result;     /* of the worker that gives now */
	struct handover_message answer;
	unsigned unanswered;       /* messages */
	struct deadline later_due; /* GIVING: the worker was asked to give too early */
	uint64_t waits_since_ms;   /* 0: it was not */
	enum { GIVER_SERVING, GIVER_CLOSING } life;
	enum { GIVER_WAITS, GIVER_WAITS_NO_MORE } patience; /* for owners of connections of the worker that gives */
};

bool handover_giver_may_go(enum giver_state from, enum giver_state to)
{
	return (state_rows[from].may_go_to >> to) & 1;
}

static void giver_move(struct handover_giver *g, enum giver_state to)
{
	assert(handover_giver_may_go(g->state, to));
	log_event(LOG_DEBUG, NULL, "handover", "from=%s to=%s", state_rows[g->state].name, state_rows[to].name);
	g->state = to;
	g->p.shared->is_given = to != GIVER_ALONE;
}

/* --- the end of a handover --- */

static void close_channel(struct handover_giver *g)
{
	deadline_cancel(&g->hello_due);
	watch_stop(g->watch);
	g->watch = NULL;
	close(g->fd);
	g->fd = -1;
}

/* The other process is gone, or has stopped the handover. */
static void break_off(struct handover_giver *g, const char *cause)
{
	log_paced(
		g->given ? LOG_ERROR : LOG_WARNING, NULL, "not replaced", "cause=%s workers_lost=%u", cause, g->given);
	close_channel(g);
	for (unsigned i = 0; i < g->given; i++)
		worker_post(g->p.threads[i], ragent_worker_unpark, g->p.workers[i]);
	notes_go_on_serving(g->p.shared->notes);
	g->given = 0;
	giver_move(g, GIVER_ALONE);
}

static void giver_refuse(struct handover_giver *g, const char *why)
{
	handover_channel_say(g->fd, HANDOVER_REFUSED, why, TALK_LIMIT_MS);
	break_off(g, why);
}

/* --- one worker, on its thread --- */

/* Wait until at most @left messages are unanswered. */
static int await_taken(struct handover_giver *g, unsigned left)
{
	int r = 0;

	while (r == 0 && g->unanswered > left) {
		r = handover_channel_receive(g->fd, &g->answer, GIVE_LIMIT_MS);
		if (r == 0 && g->answer.type != HANDOVER_TAKEN)
			r = CSSL_E_MISMATCH;
		g->unanswered--;
	}
	return r;
}

static int giver_give(void *ctx, const struct handover_message *m)
{
	struct handover_giver *g = ctx;

	if (fault_at("handover.give", NULL, NULL) == FAULT_FAIL)
		return CSSL_E_SYSTEM;
	int r = handover_channel_send(g->fd, m, GIVE_LIMIT_MS);
	g->unanswered++;
	return r == 0 ? await_taken(g, GIVE_AHEAD) : r;
}

static int give_all(struct handover_giver *g, struct ragent_worker *rw)
{
	struct notes *notes = g->p.shared->notes;

	g->unanswered = 0;
	int r = handover_worker_pack(rw, giver_give, g);

	if (r == 0)
		r = await_taken(g, 0);
	if (r == 0 && fault_at("handover.commit", NULL, NULL) == FAULT_FAIL)
		r = CSSL_E_SYSTEM;
	if (r == 0) {
		/* law 2: from here on the keeper makes no process that could restore what the other one has */
		notes_set_stage(notes, NOTES_GIVING); /* now, because the other one has nothing before */
		notes_share(notes, g->given);
		r = handover_channel_say(g->fd, HANDOVER_COMMIT, "", GIVE_LIMIT_MS);
	}
	if (r == 0) {
		handover_worker_let_go(rw); /* this closes its sockets here */
		notes_share_nothing(notes);
		return 0;
	}
	/* the other process reads nothing more; without COMMIT it does not touch the sockets */
	shutdown(g->fd, SHUT_RDWR);
	notes_share_nothing(notes);
	handover_worker_resume(rw);
	return r;
}

static void on_given(struct worker *w, void *arg);

static void give_here(struct worker *w, void *arg)
{
	struct handover_giver *g = arg;
	struct ragent_worker *rw = g->p.workers[g->given];
	const bool runs = rw->state == RAGENT_WORKER_RUNNING;
	const uint64_t began_ns = uv_hrtime();

	if (g->given == 0 && g->patience == GIVER_WAITS && runs && connection_home_waits_for_owners(&rw->home)) {
		g->result = GIVE_LATER;
		worker_post(g->p.main, on_given, g);
		return;
	}
	g->result = runs ? give_all(g, rw) : CSSL_E_STATE;
	log_event(g->result < 0 ? LOG_WARNING : LOG_INFO, NULL, g->result < 0 ? "worker not given" : "worker given",
		"worker=%u us=%llu result=%s", worker_index(w), (unsigned long long)(uv_hrtime() - began_ns) / 1000,
		g->result < 0 ? error_text(g->result) : "done");
	handover_message_clear(&g->answer);
	worker_post(g->p.main, on_given, g);
}

/* --- the conversation, on the main loop --- */

static void giver_on_readable(void *ctx);

static void listen_to(struct handover_giver *g)
{
	g->watch = watch_start(g->p.main, g->fd, giver_on_readable, g);
	if (!g->watch)
		break_off(g, "out of memory");
}

static void destroy_now(struct handover_giver *g);

static void ask_worker(struct handover_giver *g)
{
	if (worker_post(g->p.threads[g->given], give_here, g) == 0)
		return;
	giver_move(g, GIVER_OFFERED);
	break_off(g, "out of memory");
}

static void on_later_due(struct deadline *d)
{
	ask_worker(container_of(d, struct handover_giver, later_due));
}

/* Connections wait for the link to their owner, which lives: the new process cannot, and would have to take them over.
 * They wait for `lost` at most, and only before the first worker is given: from then on no other process follows this
 * one at its death. The links of all workers come back at about the same time. */
static void give_later(struct handover_giver *g)
{
	const uint64_t now_ms = worker_now_ms(g->p.main);

	if (g->waits_since_ms == 0)
		g->waits_since_ms = now_ms;
	if (now_ms - g->waits_since_ms >= g->p.shared->self->health.lost_ms)
		g->patience = GIVER_WAITS_NO_MORE;
	deadline_set(g->p.main, &g->later_due, LATER_MS);
}

static void on_given(struct worker *w, void *arg)
{
	struct handover_giver *g = arg;

	if (g->result == GIVE_LATER && g->life == GIVER_SERVING) {
		give_later(g);
		return;
	}
	if (g->result == GIVE_LATER)
		g->result = UV_ECANCELED;
	giver_move(g, GIVER_OFFERED);
	if (g->result < 0) {
		break_off(g, error_text(g->result));
	} else {
		g->given++;
		listen_to(g);
	}
	if (g->life == GIVER_CLOSING)
		destroy_now(g);
}

static int put_listeners(struct handover_giver *g, unsigned worker, struct handover_message *m)
{
	const struct ragent_worker *rw = g->p.workers[worker];
	char key[NOTES_KEY_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < rw->listening_count; i++) {
		const struct listening *at = &rw->listening[i];
		if (m->fd_count == HANDOVER_FDS_MAX) {
			r = handover_channel_send(g->fd, m, TALK_LIMIT_MS);
			handover_message_begin(m, HANDOVER_SOCKETS);
		}
		passed_key_of_listener(key, at->front->conf->name, at->configured);
		if (r == 0)
			r = handover_socket_pack(m, key, worker, listener_fd(at->listener));
	}
	return r;
}

static int send_sockets(struct handover_giver *g, struct handover_message *m)
{
	char key[NOTES_KEY_MAX];

	handover_message_begin(m, HANDOVER_SOCKETS);
	int r = handover_socket_pack(m, passed_key_of_path(key, "handover", g->path), 0, listener_fd(g->listener));
	if (r == 0)
		r = g->p.put_sockets(g->p.ctx, m);
	for (unsigned i = 0; r == 0 && i < g->p.worker_count; i++)
		r = put_listeners(g, i, m);
	if (r == 0)
		r = handover_channel_send(g->fd, m, TALK_LIMIT_MS);
	handover_message_begin(m, HANDOVER_SOCKETS); /* an empty one is the last */
	return r == 0 ? handover_channel_send(g->fd, m, TALK_LIMIT_MS) : r;
}

static int giver_in_hello(struct handover_giver *g, struct handover_message *m)
{
	int format = handover_hello_read(m);

	if (format == CSSL_E_VERSION) {
		giver_refuse(g, "the new process reads no format that this one writes: stop this one first");
		return 0;
	}
	if (format < 0)
		return format;
	deadline_cancel(&g->hello_due);
	int r = handover_offer_pack(m, (unsigned)format, g->p.shared, g->p.worker_count);
	if (r == 0)
		r = handover_channel_send(g->fd, m, TALK_LIMIT_MS);
	if (r == 0)
		r = send_sockets(g, m);
	if (r == 0)
		giver_move(g, GIVER_OFFERED);
	return r;
}

static int giver_in_take(struct handover_giver *g, struct handover_message *m)
{
	const char *why_not = g->p.why_not(g->p.ctx);

	if (g->given == g->p.worker_count)
		return CSSL_E_STATE;
	if (why_not) {
		giver_refuse(g, why_not);
		return 0;
	}
	giver_move(g, GIVER_GIVING);
	watch_stop(g->watch);
	g->watch = NULL;
	g->waits_since_ms = 0;
	g->patience = GIVER_WAITS;
	ask_worker(g);
	return 0;
}

static int giver_in_done(struct handover_giver *g, struct handover_message *m)
{
	if (g->given < g->p.worker_count)
		return CSSL_E_STATE;
	g->file = (struct listener_file){ 0 };
	giver_move(g, GIVER_REPLACED);
	log_event(LOG_INFO, NULL, "replaced", "workers=%u", g->given);
	g->p.on_replaced(g->p.ctx);
	close_channel(g); /* this tells the other process that this one serves no more */
	return 0;
}

static int giver_in_refused(struct handover_giver *g, struct handover_message *m)
{
	char sentence[256];

	handover_sentence(m, sentence, sizeof sentence);
	break_off(g, sentence);
	return 0;
}

#define IN(name) (1u << GIVER_##name)

static const struct {
	int (*fn)(struct handover_giver *g, struct handover_message *m);
	unsigned states;
} messages[HANDOVER_TYPE_END] = {
	[HANDOVER_HELLO] = { giver_in_hello, IN(GREETED) },
	[HANDOVER_TAKE] = { giver_in_take, IN(OFFERED) },
	[HANDOVER_DONE] = { giver_in_done, IN(OFFERED) },
	[HANDOVER_REFUSED] = { giver_in_refused, IN(GREETED) | IN(OFFERED) },
};

static void giver_on_readable(void *ctx)
{
	struct handover_giver *g = ctx;
	struct handover_message m = { 0 };
	int r = handover_channel_receive(g->fd, &m, TALK_LIMIT_MS);

	if (r == 0) {
		bool expected = messages[m.type].fn && (messages[m.type].states & (1u << g->state));
		r = expected ? messages[m.type].fn(g, &m) : CSSL_E_STATE;
	}
	handover_message_clear(&m);
	if (r == UV_EOF)
		break_off(g, "the new process is gone");
	else if (r < 0)
		giver_refuse(g, error_text(r));
}

/* --- access --- */

static bool may_come(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof peer;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && (peer.uid == 0 || peer.uid == geteuid());
}

/* Unread bytes mean that this loop is slow; the other process is not silent. */
static bool giver_has_unread(const struct handover_giver *g)
{
	uint8_t byte;

	return recv(g->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static void on_hello_due(struct deadline *d)
{
	struct handover_giver *g = container_of(d, struct handover_giver, hello_due);

	if (giver_has_unread(g))
		deadline_set(g->p.main, d, UNREAD_MORE_MS);
	else
		break_off(g, "it says nothing");
}

/* A process that connected and stays silent does not keep a new process out. */
static void let_silent_one_go(struct handover_giver *g)
{
	if (g->state == GIVER_GREETED && worker_turn(g->p.main) != g->greeted_turn && !giver_has_unread(g))
		break_off(g, "it says nothing, and another process came");
}

static void giver_on_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct handover_giver *g = ctx;
	const bool may = may_come(fd);

	if (may)
		let_silent_one_go(g);
	const char *why_not = !may                       ? "this user may not replace it"
			      : g->state != GIVER_ALONE  ? "another process is replacing it"
			      : g->life == GIVER_CLOSING ? "it is stopping"
							 : g->p.why_not(g->p.ctx);

	if (why_not) {
		log_paced(LOG_WARNING, NULL, "not replaced", "cause=%s", why_not);
		handover_channel_say(fd, HANDOVER_REFUSED, why_not, TALK_LIMIT_MS);
		close(fd);
		return;
	}
	g->fd = fd;
	g->greeted_turn = worker_turn(g->p.main);
	deadline_set(g->p.main, &g->hello_due, HELLO_MS);
	giver_move(g, GIVER_GREETED);
	listen_to(g);
}

static void giver_on_listener_closed(void *ctx)
{
	struct handover_giver *g = ctx;

	free(g->path);
	free(g);
}

static const struct listener_ops listener_ops = { .on_accept = giver_on_accept, .on_closed = giver_on_listener_closed };

/* --- life --- */

static int giver_open_socket(struct handover_giver *g, int fd)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int r = 0;

	if (strlen(g->path) >= sizeof un.sun_path)
		return UV_ENAMETOOLONG;
	strcpy(un.sun_path, g->path);
	if (fd > 0) {
		g->listener = listener_create_fd(g->p.main, fd, &listener_ops, g, &r);
		return r;
	}
	g->listener =
		listener_create(g->p.main, (const struct sockaddr *)&un, BACKLOG, SOCKET_MODE, &listener_ops, g, &r);
	if (g->listener)
		listener_note_file(&g->file, g->path);
	return r;
}

struct handover_giver *handover_giver_create(
	const struct handover_giver_params *p, const char *path, int fd, char *error, size_t error_cap)
{
	struct handover_giver *g = calloc(1, sizeof *g);
	int r = UV_ENOMEM;

	if (g && (g->path = strdup(path)) != NULL) {
		g->p = *p;
		g->fd = -1;
		g->hello_due.fn = on_hello_due;
		g->later_due.fn = on_later_due;
		r = giver_open_socket(g, fd);
	}
	if (r == 0)
		return g;
	snprintf(error, error_cap, "handover socket '%s': %s", path, uv_strerror(r));
	free(g ? g->path : NULL);
	free(g);
	return NULL;
}

void handover_giver_pause(struct handover_giver *g)
{
	listener_pause(g->listener);
	g->file = (struct listener_file){ 0 };
}

void handover_giver_resume(struct handover_giver *g)
{
	listener_note_file(&g->file, g->path);
	listener_resume(g->listener);
}

int handover_giver_fd(const struct handover_giver *g)
{
	return listener_fd(g->listener);
}

static void destroy_now(struct handover_giver *g)
{
	deadline_cancel(&g->later_due);
	if (g->fd >= 0)
		close_channel(g);
	listener_remove_file(&g->file, g->path); /* if it stays, the next process replaces it */
	listener_close(g->listener);
}

void handover_giver_destroy(struct handover_giver *g)
{
	if (!g || g->life == GIVER_CLOSING)
		return;
	g->life = GIVER_CLOSING;
	if (g->state != GIVER_GIVING || deadline_is_set(&g->later_due)) /* else after the worker has ended */
		destroy_now(g);
}
