/* misuse.c: an SSL_ID from the truth and from what the command puts in its place. Attempts live until the end: what the
 * agent sends on their streams, however late, is taken and audited.
 */
#include "tests/lib/hostile/misuse.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/loop/timer.h"
#include "net/loop/wheel.h"
#include "net/memory/container_of.h"
#include "net/points/audit.h"
#include "proto/end_reason.h"

#define ANSWER_MS 1000u

struct misuse {
	struct hearer hearer;
	struct misuse *next; /* of all */
	struct deadline due;
	struct held_client *client; /* NULL: of nobody */
	struct agent_link *link;
	uint32_t at, epoch;
	uint8_t id[16];
	uint64_t first; /* record that is replayed first */
	int replays, takes;
	int is_live;      /* records come under the connection's keys */
	uint64_t records; /* that came, and bytes */
	uint64_t bytes;
	void (*answered)(json_t *answer); /* NULL: it was */
};

static struct misuse *all;

/* The last SSL_ID, whole. */
static struct {
	uint8_t message[FRAME_PAYLOAD_MAX];
	size_t len;
} last;

static void answer(struct misuse *m, json_t *what)
{
	void (*answered)(json_t *) = m->answered;

	deadline_cancel(&m->due);
	m->answered = NULL;
	if (answered)
		answered(what);
	else
		json_decref(what);
}

/* --- what comes back --- */

static void acknowledge(const struct misuse *m)
{
	const struct frame_accepted a = { m->records, m->bytes, 0, 0 };
	uint8_t out[FRAME_ACCEPTED_MAX];

	const size_t len = frame_accepted_write(out, &a);
	agent_link_send(m->link, m->at, FRAME_ACCEPTED, 0, out, len);
}

static void in_data(struct misuse *m, const struct frame *f)
{
	if (m->is_live)
		audit_accepted(m->id, m->epoch, f->payload, f->len);
	m->bytes += f->len;
	acknowledge(m);
}

static void in_adopted(struct misuse *m, const struct frame *f)
{
	static const char *const sources[] = { "copy", "broadcast", "frozen" };
	Cssl__LinkAdopted *a = cssl__link_adopted__unpack(NULL, f->len, f->payload);
	const char *source = a && a->source <= 2 ? sources[a->source] : "?";

	m->is_live = 1;

	if (m->takes && m->client) { /* from here on it is served as it was by its owner before */
		agent_link_hand(m->link, m->at, &m->client->hearer);
		held_client_goes_on(m->client, m->link, m->at, m->epoch);
	} else if (m->replays && m->client)
		held_client_replay(m->client, m->link, m->at, m->first);
	answer(m, json_pack("{s:s, s:s}", "answer", "adopted", "source", source));
	if (a)
		cssl__link_adopted__free_unpacked(a, NULL);
}

static void in_reattached(struct misuse *m, const struct frame *f)
{
	struct frame_reattached told = { 0 };

	frame_reattached_read(f, &told);
	answer(m, json_pack("{s:s, s:I}", "answer", "reattached", "frame", (json_int_t)told.frame));
}

static void in_refused(struct misuse *m, const struct frame *f)
{
	Cssl__LinkRefused *r = cssl__link_refused__unpack(NULL, f->len, f->payload);

	answer(m, json_pack("{s:s, s:i, s:s}", "answer", "refused", "reason", r ? (int)r->reason : -1, "detail",
			  r && r->detail ? r->detail : ""));
	if (r)
		cssl__link_refused__free_unpacked(r, NULL);
}

static void on_frame(struct hearer *h, struct agent_link *l, const struct frame *f)
{
	struct misuse *m = (struct misuse *)h;

	switch (f->type) {
	case FRAME_DATA: in_data(m, f); return;
	case FRAME_ADOPTED: in_adopted(m, f); return;
	case FRAME_REATTACHED: in_reattached(m, f); return;
	case FRAME_KEPT:
	case FRAME_HANDED_OFF: m->is_live = 1; return;
	case FRAME_REFUSED: in_refused(m, f); return;
	case FRAME_END: answer(m, json_pack("{s:s}", "answer", "ended")); return;
	default: return;
	}
}

static void on_lost(struct hearer *h)
{
	answer((struct misuse *)h, json_pack("{s:s}", "answer", "link lost"));
}

static void on_due(struct deadline *d)
{
	answer(container_of(d, struct misuse, due), json_pack("{s:s}", "answer", "nothing"));
}

/* --- what is said --- */

static uint64_t number(const json_t *how, const char *key, uint64_t truth)
{
	const json_t *v = json_object_get(how, key);

	return json_is_integer(v) ? (uint64_t)json_integer_value(v) : truth;
}

/* "own" is the default; "none", "garbled", or hexadecimal. */
static size_t choose_copy(const struct held_client *c, const json_t *how, uint8_t out[static COPY_MAX])
{
	const char *wish = json_string_value(json_object_get(how, "copy"));
	size_t len = c ? c->copy_len : 0;

	if (c)
		memcpy(out, c->copy, c->copy_len);
	if (!wish || strcmp(wish, "own") == 0)
		return len;
	if (strcmp(wish, "garbled") == 0) {
		for (size_t i = 0; i < len; i++)
			out[i] ^= 1;
		return len;
	}
	if (sodium_hex2bin(out, COPY_MAX, wish, strlen(wish), NULL, &len, NULL) != 0)
		return 0; /* "none" */
	return len;
}

static void choose_position(const struct held_client *c, const json_t *how, Cssl__Position *out)
{
	static const struct position nowhere;
	const struct position *p = c ? &c->position : &nowhere;

	cssl__position__init(out);
	out->client_records = number(how, "client_records", p->now.client_records);
	out->offset = (uint32_t)number(how, "offset", p->now.offset);
	out->read_generation = (uint32_t)number(how, "read_generation", p->now.read_generation);
	out->read_sequence = number(how, "read_sequence", p->now.read_sequence);
	out->server_records = number(how, "server_records", p->server_records);
	out->write_generation = (uint32_t)number(how, "write_generation", p->write_generation);
	out->write_sequence = number(how, "write_sequence", p->write_sequence);
}

static void choose_connection(struct misuse *m, struct held_client *c, const json_t *how)
{
	const char *other = json_string_value(json_object_get(how, "id"));

	m->client = c;
	if (c)
		memcpy(m->id, c->id, sizeof m->id);
	if (other)
		sodium_hex2bin(m->id, sizeof m->id, other, strlen(other), NULL, NULL, NULL);
}

static struct misuse *make(struct worker *w, struct agent_link *link, void (*answered)(json_t *))
{
	struct misuse *m = calloc(1, sizeof *m);

	if (!m)
		exit(EXIT_FAILURE);
	m->hearer = (struct hearer){ on_frame, on_lost };
	m->next = all;
	all = m;
	m->link = link;
	m->answered = answered;
	m->due.fn = on_due;
	m->at = agent_link_begin(link, &m->hearer);
	deadline_set(w, &m->due, ANSWER_MS);
	return m;
}

static void say(struct misuse *m, const Cssl__LinkSslId *id)
{
	last.len = protobuf_c_message_get_packed_size(&id->base);
	if (last.len <= sizeof last.message)
		protobuf_c_message_pack(&id->base, last.message);
	agent_link_send(m->link, m->at, FRAME_SSL_ID, 0, last.message, last.len);
}

void misuse_begin(
	struct worker *w, struct held_client *c, struct agent_link *link, const json_t *how, void (*answered)(json_t *))
{
	static const uint8_t nowhere[4] = { 127, 0, 0, 1 };
	struct misuse *m = make(w, link, answered);
	Cssl__LinkSslId id = CSSL__LINK_SSL_ID__INIT;
	Cssl__Endpoints e = CSSL__ENDPOINTS__INIT;
	Cssl__Position p;
	uint8_t copy[COPY_MAX];
	const char *listener = json_string_value(json_object_get(how, "listener"));

	choose_connection(m, c, how);
	m->epoch = (uint32_t)number(how, "epoch", c ? c->epoch + 1 : 2);
	m->replays = json_is_true(json_object_get(how, "replay"));
	m->takes = json_is_true(json_object_get(how, "take"));
	if (m->takes && c)
		held_client_is_given(c);
	choose_position(c, how, &p);
	m->first = p.client_records;
	e.client_address = e.server_address = (ProtobufCBinaryData){ sizeof nowhere, (uint8_t *)nowhere };
	e.client_port = e.server_port = 443;
	if (c)
		endpoints_message(&c->endpoints, &e);
	id.connection_id = (ProtobufCBinaryData){ sizeof m->id, m->id };
	id.epoch = m->epoch;
	id.cause = (Cssl__Cause)number(how, "cause", CSSL__CAUSE__CAUSE_HAND_OFF);
	id.position = &p;
	id.response_state = (Cssl__ResponseState)number(how, "response_state", 0);
	id.sealed_copy = (ProtobufCBinaryData){ choose_copy(c, how, copy), copy };
	id.listener = (char *)(listener ? listener : c ? c->listener : "sf");
	id.endpoints = &e;
	say(m, &id);
}

void misuse_replay(struct worker *w, struct agent_link *link, void (*answered)(json_t *))
{
	struct misuse *m = make(w, link, answered);

	agent_link_send(link, m->at, FRAME_SSL_ID, 0, last.message, last.len);
}

void misuse_reattach(struct worker *w, struct held_client *c, struct agent_link *link, const json_t *how,
	void (*answered)(json_t *answer))
{
	struct misuse *m = make(w, link, answered);
	struct frame_reattach r = { 0 };
	uint8_t payload[FRAME_REATTACH_LEN];

	choose_connection(m, c, how);
	m->epoch = (uint32_t)number(how, "epoch", c ? c->epoch : 1);
	r.epoch = m->epoch;
	r.stream = (uint32_t)number(how, "stream", c ? c->at : 1);
	memcpy(r.connection_id, m->id, sizeof r.connection_id);
	frame_reattach_write(payload, &r);
	agent_link_send(link, m->at, FRAME_REATTACH, 0, payload, sizeof payload);
}
