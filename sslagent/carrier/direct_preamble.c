/* direct_preamble.c: STARTTLS on an agent's own listener, behind any balancer: the dialogue of preamble/preamble.h
 * on the client's TCP connection. At STARTTLS the agent itself compares the bytes that it has read with the bytes
 * that came.
 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/limits/handshake_limit.h"
#include "net/memory/container_of.h"
#include "net/report/log_pace.h"
#include "net/socket/endpoints.h"
#include "sslagent/carrier/direct.h"
#include "sslagent/counters.h"
#include "sslagent/preamble/preamble.h"

#define REPLY_MAX 128u

struct direct_preamble {
	struct preamble_carrier carrier;
	struct direct *direct;
	struct preamble *preamble;    /* NULL: it is over */
	struct handshake_place place; /* in the limit of preambles */
	size_t reply_len;
	uint8_t reply[REPLY_MAX]; /* the answer to STARTTLS, not sent yet */
	uint8_t step;             /* enum direct_step */
	uint8_t client;           /* enum direct_client */
};
enum direct_step { DIRECT_TALKS, DIRECT_OVER_BY_STARTTLS, DIRECT_OVER };
enum direct_client { DIRECT_CLIENT_SPEAKS, DIRECT_CLIENT_ENDED };

static struct direct_preamble *direct_preamble_of(struct preamble_carrier *c)
{
	return container_of(c, struct direct_preamble, carrier);
}

static struct preamble_home *direct_preamble_home(const struct direct *d)
{
	return &d->listener->home->preambles;
}

static void direct_preamble_leave_place(struct direct_preamble *p)
{
	handshake_limit_leave(direct_preamble_home(p->direct)->direct, &p->place);
}

static void direct_preamble_drop(struct direct *d)
{
	if (d->preamble)
		direct_preamble_leave_place(d->preamble);
	free(d->preamble);
	d->preamble = NULL;
}

static void direct_preamble_on_say(struct preamble_carrier *c, const void *words, size_t len, enum preamble_words what)
{
	struct direct *d = direct_preamble_of(c)->direct;

	d->clear_len += len;
	stream_write(&d->stream, words, len);
}

static void direct_preamble_on_taken(struct preamble_carrier *c, uint64_t bytes)
{
	/* the unused bytes wait in the stream */
}

static void direct_preamble_on_wants(struct preamble_carrier *c)
{
	stream_read_start(&direct_preamble_of(c)->direct->stream);
}

static void direct_preamble_on_starttls(struct preamble_carrier *c, const void *reply, size_t len, uint64_t taken)
{
	struct direct_preamble *p = direct_preamble_of(c);

	p->preamble = NULL;
	p->step = DIRECT_OVER_BY_STARTTLS;
	p->reply_len = len < REPLY_MAX ? len : REPLY_MAX;
	memcpy(p->reply, reply, p->reply_len);
}

static void direct_preamble_on_relayed(struct preamble_carrier *c)
{
	direct_preamble_leave_place(direct_preamble_of(c));
	direct_watch_silence(direct_preamble_of(c)->direct);
}

static void direct_preamble_on_end(struct preamble_carrier *c, enum end_reason reason, enum preamble_end how)
{
	struct direct_preamble *p = direct_preamble_of(c);
	struct direct *d = p->direct;

	direct_log_end(d, reason, how == PREAMBLE_ABORT ? "reset" : "fin");
	p->preamble = NULL;
	p->step = DIRECT_OVER;
	direct_preamble_leave_place(p);
	if (how == PREAMBLE_ABORT)
		direct_abort(d);
	else
		direct_linger(d, DISCARD_OF_STRANGER);
}

static const struct preamble_carrier_ops direct_preamble_carrier = {
	.say = direct_preamble_on_say,
	.taken = direct_preamble_on_taken,
	.wants = direct_preamble_on_wants,
	.starttls = direct_preamble_on_starttls,
	.relayed = direct_preamble_on_relayed,
	.end = direct_preamble_on_end,
};

/* --- its way --- */

const struct conf_listener *direct_conf(const struct direct_listener *l)
{
	return conf_listener_find(l->home->connections->conf, l->conf->listener);
}

bool direct_begins_in_clear(const struct direct_listener *l)
{
	return conf_has_preamble(direct_conf(l));
}

size_t direct_preamble_full(const struct direct_listener *l, uint8_t out[static DIRECT_WORDS_MAX])
{
	struct wire_writer w = wire_writer(out, DIRECT_WORDS_MAX);

	if (direct_begins_in_clear(l))
		smtp_own_write(&w, SMTP_OWN_TOO_MANY_CONNECTIONS);
	return (size_t)wire_writer_len(&w);
}

static struct preamble *open_preamble(struct direct *d)
{
	struct endpoints known = { 0 };
	Cssl__Endpoints endpoints;
	struct connection_id id;

	endpoints_from_sockets(&known, (const struct sockaddr *)&d->client, (const struct sockaddr *)&d->server);
	endpoints_message(&known, &endpoints);
	randombytes_buf(id.bytes, sizeof id.bytes);
	return preamble_open(direct_preamble_home(d), &d->preamble->carrier, direct_conf(d->listener), &id, &endpoints);
}

static void direct_preamble_note_refused(const char *why)
{
	count(COUNT_PREAMBLES_REFUSED);
	log_paced(LOG_INFO, NULL, "preamble refused", "cause=\"%s\" remedy=limits.preambles", why);
}

/* The preamble of another client may have to end for it. 0; or negative: there is no place for this one. */
static int direct_preamble_take_place(struct direct_preamble *p)
{
	struct direct *d = p->direct;
	struct handshake_place *loser;

	p->place.holder = p;
	int r = handshake_limit_enter(
		direct_preamble_home(d)->direct, &p->place, &d->source, worker_now_ms(d->stream.worker), &loser);
	if (r == 0 && loser) {
		direct_preamble_note_refused("another one needed its place");
		direct_preamble_finish(((struct direct_preamble *)loser->holder)->direct, END_LIMIT_PREAMBLES);
	}
	return r;
}

void direct_preamble_begin(struct direct *d)
{
	struct direct_preamble *p = calloc(1, sizeof *p);
	uint8_t words[DIRECT_WORDS_MAX];

	if (!p) {
		direct_refuse(d, END_INTERNAL);
		return;
	}
	*p = (struct direct_preamble){ .carrier.ops = &direct_preamble_carrier, .direct = d };
	d->preamble = p;
	d->state = DIRECT_PREAMBLE;
	deadline_cancel(&d->deadline); /* the preamble has its own */
	if (direct_preamble_take_place(p) == 0)
		p->preamble = open_preamble(d);
	if (p->preamble)
		return;
	direct_preamble_drop(d);
	direct_preamble_note_refused("too many, or too many of its source");
	direct_refuse_saying(d, END_LIMIT_PREAMBLES, words, direct_preamble_full(d->listener, words));
}

/* @rest: bytes that came with STARTTLS. The kernel's unread bytes of the client also came before the answer. */
static void begin_tls(struct direct *d, size_t rest)
{
	if (rest || stream_has_unread(&d->stream)) {
		count(COUNT_STARTTLS_INJECTIONS);
		direct_preamble_drop(d);
		direct_refuse(d, END_INJECTION);
		return;
	}
	d->clear_len += d->preamble->reply_len;
	stream_write(&d->stream, d->preamble->reply, d->preamble->reply_len);
	direct_preamble_drop(d);
	direct_await_handshake(d);
	stream_read_start(&d->stream);
}

size_t direct_preamble_read(struct direct *d, const uint8_t *data, size_t len)
{
	struct direct_preamble *p = d->preamble;
	size_t used = 0, n = 1;

	if (deadline_is_set(&d->deadline))
		direct_watch_silence(d);
	while (p->step == DIRECT_TALKS && n && used < len) {
		n = preamble_read(p->preamble, data + used, len - used);
		used += n;
	}
	if (p->step == DIRECT_OVER_BY_STARTTLS) {
		begin_tls(d, len - used);
		return len;
	}
	if (p->step == DIRECT_OVER) {
		direct_preamble_drop(d);
		return len;
	}
	if (used < len)
		stream_read_stop(&d->stream);
	else if (p->client == DIRECT_CLIENT_ENDED)
		preamble_fin(p->preamble);
	return used;
}

void direct_preamble_written(struct direct *d)
{
	if (deadline_is_set(&d->deadline))
		direct_watch_silence(d);
	if (d->preamble->step == DIRECT_TALKS)
		preamble_drained(d->preamble->preamble, d->drained);
}

void direct_preamble_fin(struct direct *d)
{
	struct direct_preamble *p = d->preamble;

	p->client = DIRECT_CLIENT_ENDED;
	if (p->step != DIRECT_TALKS)
		return;
	stream_read_again(&d->stream);
	if (d->preamble && p->step == DIRECT_TALKS && stream_kept(&d->stream) == 0)
		preamble_fin(p->preamble);
}

void direct_preamble_finish(struct direct *d, enum end_reason reason)
{
	if (d->preamble->step == DIRECT_TALKS)
		preamble_finish(d->preamble->preamble, reason);
}

void direct_preamble_forget(struct direct *d)
{
	if (d->preamble && d->preamble->step == DIRECT_TALKS)
		preamble_forget(d->preamble->preamble);
	direct_preamble_drop(d);
}
