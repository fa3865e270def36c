/* handover_taker.c: only the first answer has a time limit here. Only the old process may decide that the handover
 * takes too long, because only it can go on then. When it stops the handover, or dies, this side reads the end of the
 * handover connection.
 */
#include "ragent/handover/handover_taker.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/points/fault.h"
#include "net/report/error_text.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "ragent/handover/handover_message.h"
#include "ragent/handover/handover_offer.h"
#include "ragent/handover/handover_worker.h"

#define ANSWER_LIMIT_MS 5000u

struct handover_taker {
	struct handover_taker_params p;
	int fd;
	struct handover_map map;
	struct passed_sockets sockets;
	unsigned taken; /* workers, from the first on */
	int result;     /* of the last worker */
	char cause[256];
};

/* --- one worker, on its thread --- */

static void taker_note(struct handover_taker *t, int result)
{
	t->result = result;
	if (result < 0 && !t->cause[0]) /* else the other process has sent the cause */
		snprintf(t->cause, sizeof t->cause, "%s", error_text(result));
}

/* The new process has not touched the worker's sockets; the old process goes on with it. */
static int taker_give_up(struct handover_taker *t, struct ragent_worker *rw, int result)
{
	taker_note(t, result);
	if (rw->state == RAGENT_WORKER_PARKED)
		handover_worker_let_go(rw);
	notes_share_nothing(rw->home.shared->notes);
	if (result != UV_EOF)
		handover_channel_say(t->fd, HANDOVER_REFUSED, t->cause, ANSWER_LIMIT_MS);
	return result;
}

/* Take the next message and handle it. 0: more come; HANDOVER_COMMIT: the worker is ours; negative: failed.
 *
 * Once COMMIT is read, handover_taker_died() cannot see it any more: so the note comes before. */
static int take_one(struct handover_taker *t, struct ragent_worker *rw, struct handover_message *m)
{
	handover_channel_await(t->fd);
	fault_at("handover.waits", NULL, NULL);
	if (handover_channel_next_is(t->fd, HANDOVER_COMMIT))
		notes_share_nothing(rw->home.shared->notes);
	fault_at("handover.came", NULL, NULL);
	int r = handover_channel_receive(t->fd, m, HANDOVER_NO_LIMIT);

	if (r < 0)
		return r;
	/* law 2: not before COMMIT, which the other process says when it can answer nobody any more */
	if (m->type == HANDOVER_COMMIT) {
		notes_share_nothing(rw->home.shared->notes); /* if it was not seen above */
		return HANDOVER_COMMIT;
	}
	if (fault_at("handover.take", NULL, NULL) == FAULT_FAIL)
		return CSSL_E_SYSTEM;
	if (m->type == HANDOVER_REFUSED) {
		handover_sentence(m, t->cause, sizeof t->cause);
		log_event(LOG_WARNING, NULL, "worker refused", "cause=%s", t->cause);
		return CSSL_E_STATE;
	}
	r = handover_worker_unpack(rw, &t->map, m);
	if (r == 0)
		r = handover_channel_say(t->fd, HANDOVER_TAKEN, "", HANDOVER_NO_LIMIT);
	return r;
}

static void taker_on_taken(struct worker *w, void *arg);

static void take_here(struct worker *w, void *arg)
{
	struct handover_taker *t = arg;
	struct ragent_worker *rw = t->p.workers[t->taken];
	struct handover_message m = { 0 };
	int r = rw->state == RAGENT_WORKER_PARKED ? handover_channel_say(t->fd, HANDOVER_TAKE, "", HANDOVER_NO_LIMIT)
						  : CSSL_E_STATE; /* in another state this process is stopping */

	/* The other process may wait before it gives anything. When it does, it goes on to serve the worker until
	 * COMMIT. */
	if (r == 0) {
		handover_channel_await(t->fd);
		notes_share_from(rw->home.shared->notes, t->taken, t->fd);
	}
	while (r == 0)
		r = take_one(t, rw, &m);
	handover_message_clear(&m);
	if (r == HANDOVER_COMMIT) {
		if (fault_at("handover.committed", NULL, NULL) == FAULT_FAIL)
			log_event(LOG_ERROR, NULL, "fault ignored, the worker is taken already", "worker=%u",
				worker_index(w));
		handover_worker_go_on(rw);
		taker_note(t, 0);
		log_event(LOG_INFO, NULL, "worker taken", "worker=%u", worker_index(w));
	} else {
		taker_give_up(t, rw, r);
	}
	worker_post(t->p.main, taker_on_taken, t);
}

/* The process that gives lets go of its sockets as soon as it has sent COMMIT. If it cannot send it any more, it goes
 * on. */
void handover_taker_died(struct notes *n)
{
	const uint32_t channel = atomic_load(&n->shared->channel);

	if (channel && atomic_load(&n->shared->shared_worker) &&
		handover_channel_ends_with((int)(channel - 1), HANDOVER_COMMIT))
		notes_share_nothing(n);
}

/* --- all of them, on the main loop --- */

/* The old process closes when it serves no more. From then on this process answers all clients. Once the old one can
 * read that this one is done, it ends, whatever happens here: then the next life has to go on. */
static void taker_let_go(struct handover_taker *t)
{
	struct handover_message m = { 0 };

	fault_at("handover.taken", NULL, NULL);
	/* if this fails the old process has ended already; clients go on meanwhile, only the control API waits */
	int r = handover_channel_say(t->fd, HANDOVER_DONE, "", ANSWER_LIMIT_MS);
	notes_set_stage(t->p.workers[0]->home.shared->notes, NOTES_SERVING);
	fault_at("handover.done", NULL, NULL);
	if (r == 0)
		handover_channel_receive(t->fd, &m, ANSWER_LIMIT_MS);
	handover_message_clear(&m);
}

static void taker_end(struct handover_taker *t, enum taker_result result)
{
	if (result == TAKER_IS_ALONE)
		for (unsigned i = t->taken; i < t->p.worker_count; i++)
			worker_post(t->p.threads[i], ragent_worker_unpark, t->p.workers[i]);
	if (result == TAKER_HAS_ALL)
		taker_let_go(t);
	t->p.on_end(t->p.ctx, result, t->cause);
	close(t->fd);
	t->fd = -1;
}

static void taker_next(struct handover_taker *t)
{
	if (worker_post(t->p.threads[t->taken], take_here, t) == 0)
		return;
	taker_note(t, CSSL_E_NO_MEMORY);
	taker_end(t, t->taken ? TAKER_HAS_SOME : TAKER_HAS_NOTHING);
}

static void taker_on_taken(struct worker *w, void *arg)
{
	struct handover_taker *t = arg;

	if (t->result < 0) {
		taker_end(t, t->taken == 0 ? TAKER_HAS_NOTHING : t->result == UV_EOF ? TAKER_IS_ALONE : TAKER_HAS_SOME);
		return;
	}
	if (++t->taken < t->p.worker_count) {
		taker_next(t);
		return;
	}
	taker_end(t, TAKER_HAS_ALL);
}

void handover_taker_begin(struct handover_taker *t, const struct handover_taker_params *p)
{
	t->p = *p;
	taker_next(t);
}

/* --- the offer --- */

static int taker_hear(
	struct handover_taker *t, struct handover_message *m, enum handover_type type, char *error, size_t cap)
{
	int r = handover_channel_receive(t->fd, m, ANSWER_LIMIT_MS);

	if (r == 0 && m->type == type)
		return 0;
	if (r == 0 && m->type == HANDOVER_REFUSED)
		handover_sentence(m, error, cap);
	else
		snprintf(error, cap, "the running process: %s", error_text(r < 0 ? r : CSSL_E_TYPE));
	return CSSL_E_SYSTEM;
}

static int hear_sockets(struct handover_taker *t, struct handover_message *m, char *error, size_t cap)
{
	do {
		int r = taker_hear(t, m, HANDOVER_SOCKETS, error, cap);
		if (r < 0)
			return r;
		r = handover_sockets_read(m, &t->sockets);
		if (r < 0) {
			snprintf(error, cap, "its sockets: %s", error_text(r));
			return r;
		}
	} while (m->len > 0);
	return 0;
}

static int taker_greet(struct handover_taker *t, struct ragent_shared *shared, char *error, size_t cap)
{
	struct handover_message m = { 0 };
	int r = handover_hello_pack(&m);

	if (r == 0)
		r = handover_channel_send(t->fd, &m, ANSWER_LIMIT_MS);
	if (r < 0)
		snprintf(error, cap, "the running process: %s", error_text(r));
	if (r == 0)
		r = taker_hear(t, &m, HANDOVER_OFFER, error, cap);
	if (r == 0)
		r = handover_offer_read(&m, shared, &t->map, error, cap);
	if (r == 0)
		r = hear_sockets(t, &m, error, cap);
	handover_message_clear(&m);
	return r;
}

struct handover_taker *handover_taker_create(
	const char *path, struct ragent_shared *shared, char *error, size_t error_cap)
{
	struct handover_taker *t = calloc(1, sizeof *t);

	if (!t) {
		snprintf(error, error_cap, "out of memory");
		return NULL;
	}
	t->fd = handover_channel_connect(path);
	if (t->fd < 0) {
		snprintf(error, error_cap, "handover socket '%s': %s", path, error_text(t->fd));
		handover_taker_destroy(t, NULL);
		return NULL;
	}
	if (taker_greet(t, shared, error, error_cap) == 0)
		return t;
	handover_taker_destroy(t, error);
	return NULL;
}

struct passed_sockets *handover_taker_sockets(struct handover_taker *t)
{
	return &t->sockets;
}

int handover_taker_check_sockets(struct handover_taker *t, char *error, size_t error_cap)
{
	const char *left = passed_sockets_left(&t->sockets);

	if (!left)
		return 0;
	snprintf(error, error_cap,
		"the cluster file has no use for the socket of %s any more: clients may be waiting there", left);
	return CSSL_E_MISMATCH;
}

void handover_taker_destroy(struct handover_taker *t, const char *why)
{
	if (!t)
		return;
	if (t->fd >= 0 && why)
		handover_channel_say(t->fd, HANDOVER_REFUSED, why, ANSWER_LIMIT_MS);
	if (t->fd >= 0)
		close(t->fd);
	passed_sockets_clear(&t->sockets);
	handover_map_clear(&t->map);
	free(t);
}
