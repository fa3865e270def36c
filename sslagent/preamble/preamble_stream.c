/* preamble_stream.c: turns frames into words and words into frames. Input that the preamble cannot use yet waits
 * here, at most one window. */
#include "sslagent/preamble/preamble_stream.h"

#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "proto/error.h"

struct preamble_stream {
	struct preamble_carrier carrier;
	struct preamble_stream_place at;
	struct preamble_home *home;
	struct preamble *preamble; /* NULL: it is over */
	uint8_t *held;             /* bytes of the client, not used yet */
	uint32_t held_len, held_cap;
	uint32_t window;
	uint8_t reading; /* enum stream_reading_now */
	uint8_t client;  /* enum stream_client */
};
enum stream_reading_now { READS_NOTHING, READS_NOW };
enum stream_client { CLIENT_IS_THERE, CLIENT_ENDED };

static struct preamble_stream *preamble_stream_of(struct preamble_carrier *c)
{
	return container_of(c, struct preamble_stream, carrier);
}

/* No caller up the stack uses @s: each looks at s->preamble after its call of the preamble. */
static void preamble_stream_destroy(struct preamble_stream *s)
{
	free(s->held);
	free(s);
}

/* --- to RAgent --- */

static void send_frame(struct preamble_stream *s, enum frame_type type, uint8_t flags, const void *payload, size_t len)
{
	s->at.send(s->at.holder, type, flags, payload, len);
}

static void preamble_stream_on_say(struct preamble_carrier *c, const void *words, size_t len, enum preamble_words what)
{
	send_frame(preamble_stream_of(c), FRAME_DATA,
		FRAME_PLAINTEXT | (what == PREAMBLE_WHOLE ? FRAME_REPLY_COMPLETE : 0), words, len);
}

static void preamble_stream_on_taken(struct preamble_carrier *c, uint64_t bytes)
{
	uint8_t payload[sizeof bytes];

	wire_store_u64(payload, bytes);
	send_frame(preamble_stream_of(c), FRAME_TAKEN, 0, payload, sizeof payload);
}

static void preamble_stream_over(struct preamble_stream *s)
{
	s->preamble = NULL;
	s->at.over(s->at.holder);
	if (s->reading == READS_NOTHING)
		preamble_stream_destroy(s);
}

static void preamble_stream_on_starttls(struct preamble_carrier *c, const void *reply, size_t len, uint64_t taken)
{
	struct preamble_stream *s = preamble_stream_of(c);

	preamble_stream_on_taken(c, taken);
	send_frame(s, FRAME_DATA, FRAME_PLAINTEXT | FRAME_REPLY_COMPLETE | FRAME_RECORDS_FOLLOW, reply, len);
	preamble_stream_over(s);
}

static void preamble_stream_on_relayed(struct preamble_carrier *c)
{
	struct preamble_stream *s = preamble_stream_of(c);

	s->window = s->home->window_len;
	send_frame(s, FRAME_RELAYED, 0, NULL, 0);
}

static void preamble_stream_on_end(struct preamble_carrier *c, enum end_reason reason, enum preamble_end how)
{
	const uint8_t payload = (uint8_t)reason;

	send_frame(preamble_stream_of(c), FRAME_END, how == PREAMBLE_ABORT ? FRAME_ABORT : 0, &payload, 1);
	preamble_stream_over(preamble_stream_of(c));
}

/* --- from RAgent --- */

static int preamble_stream_keep(struct preamble_stream *s, const uint8_t *data, size_t len)
{
	if (len > s->window - s->held_len)
		return CSSL_E_TOO_LONG;
	if (s->held_len + len > s->held_cap) {
		uint8_t *held = realloc(s->held, s->held_len + len);
		if (!held)
			return CSSL_E_NO_MEMORY;
		s->held = held;
		s->held_cap = (uint32_t)(s->held_len + len);
	}
	memcpy(s->held + s->held_len, data, len);
	s->held_len += (uint32_t)len;
	return 0;
}

static void drop_held(struct preamble_stream *s, size_t len)
{
	s->held_len -= (uint32_t)len;
	memmove(s->held, s->held + len, s->held_len);
	if (s->held_len)
		return;
	free(s->held);
	s->held = NULL;
	s->held_cap = 0;
}

/* Give the preamble all that waits, and then the client's end. The preamble may call this again from inside: then the
 * outer call continues. */
static void preamble_stream_offer(struct preamble_stream *s)
{
	if (s->reading == READS_NOW)
		return;
	s->reading = READS_NOW;
	if (s->preamble && s->held_len)
		drop_held(s, preamble_read(s->preamble, s->held, s->held_len));
	if (s->preamble && s->held_len == 0 && s->client == CLIENT_ENDED)
		preamble_fin(s->preamble);
	s->reading = READS_NOTHING;
	if (!s->preamble)
		preamble_stream_destroy(s);
}

static void preamble_stream_on_wants(struct preamble_carrier *c)
{
	struct preamble_stream *s = preamble_stream_of(c);

	if (s->held_len)
		preamble_stream_offer(s);
}

static const struct preamble_carrier_ops clear_carrier = {
	.say = preamble_stream_on_say,
	.taken = preamble_stream_on_taken,
	.wants = preamble_stream_on_wants,
	.starttls = preamble_stream_on_starttls,
	.relayed = preamble_stream_on_relayed,
	.end = preamble_stream_on_end,
};

static int in_preamble_data(struct preamble_stream *s, const struct frame *f, const uint8_t *payload)
{
	if (f->flags != FRAME_PLAINTEXT || s->client == CLIENT_ENDED)
		return CSSL_E_STATE;
	int r = preamble_stream_keep(s, payload, f->len);
	if (r < 0)
		return r;
	preamble_stream_offer(s);
	return 0;
}

static int in_accepted(struct preamble_stream *s, const struct frame *f)
{
	struct frame_accepted a;
	int r = frame_accepted_read(f, &a);

	if (r == 0)
		preamble_drained(s->preamble, a.drained);
	return r;
}

static int in_finish(struct preamble_stream *s, const struct frame *f)
{
	if (f->payload[0] >= END_REASON_COUNT)
		return CSSL_E_RANGE;
	preamble_finish(s->preamble, (enum end_reason)f->payload[0]);
	return 0;
}

int preamble_stream_frame(struct preamble_stream *s, const struct frame *f, const uint8_t *payload)
{
	switch (f->type) {
	case FRAME_DATA: return in_preamble_data(s, f, payload);
	case FRAME_ACCEPTED: return in_accepted(s, f);
	case FRAME_FINISH: return in_finish(s, f);
	case FRAME_FIN:
		s->client = CLIENT_ENDED;
		preamble_stream_offer(s);
		return 0;
	default: return CSSL_E_STATE;
	}
}

void preamble_stream_pause(struct preamble_stream *s)
{
	preamble_pause(s->preamble);
}

void preamble_stream_go_on(struct preamble_stream *s)
{
	preamble_go_on(s->preamble);
}

void preamble_stream_forget(struct preamble_stream *s)
{
	preamble_forget(s->preamble);
	preamble_stream_destroy(s);
}

struct preamble_stream *preamble_stream_open(struct preamble_home *home, const struct preamble_stream_place *place,
	const struct conf_listener *listener, const struct connection_id *id, const Cssl__Endpoints *endpoints)
{
	struct preamble_stream *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->carrier.ops = &clear_carrier;
	s->at = *place;
	s->home = home;
	s->window = FRAME_PREAMBLE_WINDOW;
	s->preamble = preamble_open(home, &s->carrier, listener, id, endpoints);
	if (s->preamble)
		return s;
	free(s);
	return NULL;
}
