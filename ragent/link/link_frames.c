/* link_frames.c: the frames of a link both ways, its streams, and the waiters for room in its output. */
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "net/memory/container_of.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "ragent/link/link_internal.h"

#define OUTPUT_LIMIT   (1024u * 1024u)
#define STREAM_IDS_END UINT32_MAX /* the link is replaced before they run out */

/* --- frames in --- */

static int in_load(struct link *l, const struct frame *f)
{
	Cssl__LinkLoad *load = cssl__link_load__unpack(NULL, f->len, f->payload);

	if (!load)
		return CSSL_E_TRUNCATED;
	l->p.ops->on_load(l->p.ctx, l, load);
	cssl__link_load__free_unpacked(load, NULL);
	return 0;
}

static int in_response(struct link *l, const struct frame *f)
{
	Cssl__LinkResponse *response = cssl__link_response__unpack(NULL, f->len, f->payload);

	if (!response)
		return CSSL_E_TRUNCATED;
	if (response->what_case == CSSL__LINK_RESPONSE__WHAT_CAUSE) {
		l->cause_stream = response->cause->stream;
		snprintf(l->cause, sizeof l->cause, "%s", response->cause->text);
	}
	l->p.ops->on_response(l->p.ctx, l, response);
	return 0;
}

static int on_link_frame(struct link *l, const struct frame *f)
{
	switch (f->type) {
	case FRAME_PING: return link_send(l, 0, FRAME_PONG, 0, f->payload, f->len);
	case FRAME_PONG: return 0; /* it is a sign of life: see link_heard */
	case FRAME_LOAD: return in_load(l, f);
	case FRAME_LEAVING: l->p.ops->on_leaving(l->p.ctx, l); return 0;
	case FRAME_RESPONSE: return in_response(l, f);
	default: return CSSL_E_TYPE;
	}
}

static struct link *link_of_framed(struct framed *f)
{
	return container_of(f, struct link, framed);
}

static bool ends_stream(const struct frame *f)
{
	return f->type == FRAME_END || (f->type == FRAME_DATA && f->flags & FRAME_RECORDS_FOLLOW);
}

static void link_foresee(struct framed *f, uint32_t stream, enum framed_distance distance)
{
	struct link *l = link_of_framed(f);
	const void *holder = streams_find(&l->streams, stream);

	if (holder && l->p.ops->foresee)
		l->p.ops->foresee(holder, distance);
}

static int link_on_frame(struct framed *f, const struct frame *frame, uint8_t *payload)
{
	struct link *l = link_of_framed(f);
	int r;

	if (l->failure)
		return 0; /* the link is being lost: ignore the rest */
	if (frame->stream == 0) {
		r = on_link_frame(l, frame);
	} else {
		void *holder = streams_find(&l->streams, frame->stream);
		/* law 2: what comes on any other stream was sealed by no owner */
		if (!holder)
			counter_add(&l->p.counters->frames_stale, 1);
		r = holder ? l->p.ops->on_frame(holder, l, frame) : 0;
		/* The holder has saved what the next process needs of the stream. A process without a keeper answers,
		 * too: it may have taken the link over, and then the agent waits for that. */
		if (r == 0 && ends_stream(frame))
			link_send(l, frame->stream, FRAME_CLOSE, 0, &(uint8_t){ END_DONE }, 1);
	}
	if (r < 0) {
		counter_add(&l->p.counters->link_violations, 1);
		log_event(LOG_ERROR, NULL, "link violation", "agent=%s worker=%u frame=%s stream=%u cause=%s",
			l->p.agent->name, l->p.agent_worker, frame_type_name(frame->type), frame->stream,
			cssl_strerror(r));
		link_fail(l, r);
	}
	return r;
}

void link_call_waiters(struct link *l)
{
	while (l->waiters.next != &l->waiters && !link_full(l)) {
		struct link_waiter *w = l->waiters.next;
		link_wait_cancel(w);
		w->fn(w);
	}
}

void link_forget_waiters(struct link *l)
{
	while (l->waiters.next != &l->waiters)
		link_wait_cancel(l->waiters.next);
}

static void link_on_turn(struct framed *f)
{
	struct link *l = link_of_framed(f);

	link_heard(l);
	if (!l->failure)
		link_call_waiters(l);
}

static void on_framed_end(struct framed *f, int error)
{
	link_fail(link_of_framed(f), error);
}

static void on_framed_closed(struct framed *f)
{
	struct link *l = link_of_framed(f);

	f->ops = NULL;
	link_fail(l, CSSL_E_NO_MEMORY); /* it could not begin; no effect if it is being lost already */
	link_handle_closed(l);
}

const struct framed_ops link_framed_ops = {
	.on_frame = link_on_frame,
	.foresee = link_foresee,
	.on_turn = link_on_turn,
	.on_end = on_framed_end,
	.on_closed = on_framed_closed,
	.payloads = FRAMED_DATA_STAYS_SHARED,
};

const char *link_cause(const struct link *l, uint32_t stream)
{
	return l->cause_stream == stream ? l->cause : "";
}

/* --- streams and frames out --- */

uint32_t link_stream_begin(struct link *l, void *holder)
{
	/* law 2: each ownership has a stream of its own, so no number comes twice on a link */
	if (l->next_stream == STREAM_IDS_END) {
		link_fail(l, CSSL_E_EXHAUSTED);
		return 0;
	}
	if (streams_add(&l->streams, l->next_stream, holder) < 0)
		return 0;
	return l->next_stream++;
}

/* Each agent process gets a proof of its own, so that no agent can show it to another one. */
void link_prove(struct link *l)
{
	uint8_t proof[FRAME_PROOF_LEN];
	crypto_generichash_state h;

	if (!link_outlived(l))
		return;
	crypto_generichash_init(&h, l->p.secret, FRAME_PROOF_LEN, sizeof proof);
	crypto_generichash_update(&h, (const uint8_t *)l->p.agent->name, strlen(l->p.agent->name));
	crypto_generichash_update(&h, (const uint8_t *)&l->peer.boot_id, sizeof l->peer.boot_id);
	crypto_generichash_final(&h, proof, sizeof proof);
	link_send(l, 0, FRAME_PROOF, 0, proof, sizeof proof);
	sodium_memzero(proof, sizeof proof);
	sodium_memzero(&h, sizeof h);
}

bool link_outlived(const struct link *l)
{
	return l->p.secret != NULL;
}

void link_stream_end(struct link *l, uint32_t stream)
{
	streams_remove(&l->streams, stream);
}

static uint8_t *link_reserve(struct link *l, size_t cap)
{
	if (!link_open(l))
		return NULL;
	uint8_t *room = framed_reserve(&l->framed, cap);
	/* after a failed write, first read the agent's remaining bytes; the end of the stream follows by itself */
	if (!room && l->framed.stream.state != STREAM_FAILED)
		link_fail(l, CSSL_E_NO_MEMORY);
	return room;
}

int link_send(struct link *l, uint32_t stream, enum frame_type type, uint8_t flags, const void *payload, size_t len)
{
	uint8_t *room = link_reserve(l, len);

	if (!room)
		return CSSL_E_STATE;
	if (len)
		memcpy(room, payload, len);
	framed_commit(&l->framed, stream, type, flags, len);
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
	framed_commit(&l->framed, stream, type, 0, len);
	return 0;
}

size_t link_queued(const struct link *l)
{
	return framed_pending(&l->framed);
}

bool link_full(const struct link *l)
{
	return framed_pending(&l->framed) >= OUTPUT_LIMIT;
}

void link_wait(struct link *l, struct link_waiter *w)
{
	struct link_waiter *end = &l->waiters;

	if (w->prev)
		return;
	w->next = end;
	w->prev = end->prev;
	end->prev->next = w;
	end->prev = w;
}

void link_wait_cancel(struct link_waiter *w)
{
	if (!w->prev)
		return;
	w->prev->next = w->next;
	w->next->prev = w->prev;
	w->next = NULL;
	w->prev = NULL;
}
