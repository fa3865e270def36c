/* fake_carrier.c: see fake_carrier.h. */
#include "tests/unit/sslagent/connection/fake_carrier.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/points/audit.h"
#include "proto/error.h"
#include "ragent/connection/ownership/position.h"
#include "sslagent/tls/tls_contexts.h"

static struct fake_carrier *of(struct carrier *carrier)
{
	struct fake_carrier *o = (struct fake_carrier *)carrier;

	ck_assert_msg(o == o->ragent->current, "an earlier owner said something");
	ck_assert_msg(!o->said[FRAME_END], "it said something behind its end");
	ck_assert_msg(!o->said[FRAME_HANDED_OFF], "it is frozen and said something");
	return o;
}

/* --- what owners say --- */

static uint8_t *on_reserve(struct carrier *carrier, size_t cap)
{
	struct fake_ragent *r = of(carrier)->ragent;

	ck_assert_uint_le(cap, FRAME_PAYLOAD_MAX);
	if (r->room == NO_ROOM)
		return NULL;
	r->frame_cap = cap;
	memset(r->frame, 0xee, sizeof r->frame);
	return r->frame;
}

/* What is consumed is kept for a replay until it was answered. */
static void settle(struct fake_ragent *r)
{
	struct tls_record_header h;
	size_t at = 0;

	ck_assert_uint_le(r->position.now.client_records, r->first_record + r->kept_records);
	while (r->first_record < r->position.now.client_records) {
		ck_assert_int_eq(tls_record_scan(r->kept + at, r->kept_len - at, &h), 0);
		at += TLS_RECORD_HEADER_LEN + h.length;
		r->first_record++;
		r->kept_records--;
	}
	ck_assert_msg(at <= r->sent_len, "it consumed what it never got");
	if (r->past_len + at > FAKE_PAST_MAX)
		r->past_len = 0;
	if (at <= FAKE_PAST_MAX) {
		memcpy(r->past + r->past_len, r->kept, at);
		r->past_len += at;
	}
	memmove(r->kept, r->kept + at, r->kept_len - at);
	r->kept_len -= at;
	r->sent_len -= at;
	if (r->position.response == POSITION_AT_CHECKPOINT)
		r->past_len = r->exposed = r->download_len = 0;
}

static uint64_t count_records(const uint8_t *data, size_t len)
{
	struct tls_record_run run;
	struct tls_record_header bad;

	ck_assert_int_ge(tls_record_scan_run(data, len, len, &run, &bad), 0);
	ck_assert_uint_eq(run.len, len);
	return run.records;
}

/* As if nothing since the checkpoint had been consumed, if all of it is there. */
static void return_to_checkpoint(struct fake_ragent *r)
{
	uint64_t exposed = r->first_record + count_records(r->kept, r->sent_len);

	r->exposed = exposed > r->exposed ? exposed : r->exposed;
	if (!position_replays_from(&r->position, r->first_record - count_records(r->past, r->past_len)))
		return;
	memmove(r->kept + r->past_len, r->kept, r->kept_len);
	memcpy(r->kept, r->past, r->past_len);
	r->kept_len += r->past_len;
	r->kept_records += count_records(r->past, r->past_len);
	r->past_len = 0;
	position_return(&r->position);
	r->first_record = r->position.now.client_records;
}

static void on_send(struct carrier *carrier, size_t len, uint8_t flags)
{
	struct fake_carrier *o = of(carrier);
	struct fake_ragent *r = o->ragent;
	struct tls_record_run run;
	struct tls_record_header bad;

	ck_assert_uint_le(len, r->frame_cap);
	ck_assert_int_ge(tls_record_scan_run(r->frame, len, len, &run, &bad), 0);
	ck_assert_uint_eq(run.len, len);
	o->said[FRAME_DATA]++;
	o->data_flags = flags;
	o->received += len;
	ck_assert_uint_le(o->received - o->told, r->window + FRAME_PAYLOAD_MAX);
	ck_assert_int_eq(position_commit(&r->position, flags, run.records, run.len), 0);
	if (r->position.stage == POSITION_LIVE)
		audit_accepted(r->id.bytes, r->owner_count, r->frame, len);
	copies_commit(&r->copies, NULL, &r->position);
	settle(r);
	ck_assert_uint_le(r->queue_len + len, FAKE_QUEUE_MAX);
	memcpy(r->queue + r->queue_len, r->frame, len);
	r->queue_len += len;
	r->queued += len;
}

static void on_consumed(struct carrier *carrier, const struct frame_consumed *consumed, uint8_t flags)
{
	struct fake_carrier *o = of(carrier);

	o->said[FRAME_CONSUMED]++;
	o->consumed_flags = flags;
	ck_assert_int_eq(position_consume(&o->ragent->position, consumed, flags), 0);
	copies_commit(&o->ragent->copies, NULL, &o->ragent->position);
	settle(o->ragent);
}

static void on_fin(struct carrier *carrier, uint8_t flags)
{
	struct fake_carrier *o = of(carrier);

	o->said[FRAME_FIN]++;
	o->fin_flags = flags;
}

static void on_carrier_end(struct carrier *carrier, enum end_reason reason, enum carrier_end how)
{
	struct fake_carrier *o = of(carrier);

	o->said[FRAME_END]++;
	o->end_reason = reason;
	o->end_how = how;
	o->connection = NULL;
}

static void on_live(struct fake_carrier *o, enum frame_type type, const Cssl__LinkLive *live)
{
	struct fake_ragent *r = o->ragent;

	o->backend = live->backend;
	o->at_checkpoint = live->at_checkpoint ? 1 : 0;
	o->read_closed = live->read_closed ? 1 : 0;
	o->write_closed = live->write_closed ? 1 : 0;
	ck_assert_int_eq(position_claim(&r->position, live), 0);
	ck_assert_int_eq(
		copies_offer(&r->copies, NULL,
			&(struct copy_offer){ live->sealed_copy.data, live->sealed_copy.len,
				live->position->read_generation, live->position->write_generation, COPY_OF_LIVE }),
		0);
	settle(r);
	if (type == FRAME_HANDED_OFF) {
		r->frozen = o;
		r->offset = live->position->offset;
	}
}

static void on_copy(struct fake_carrier *o, const Cssl__LinkCopy *copy)
{
	ck_assert_int_eq(copies_offer(&o->ragent->copies, NULL,
				 &(struct copy_offer){ copy->sealed_copy.data, copy->sealed_copy.len,
					 copy->read_generation, copy->write_generation }),
		0);
	copies_commit(&o->ragent->copies, NULL, &o->ragent->position);
}

static void on_download(struct fake_carrier *o, const Cssl__LinkDownload *download)
{
	/* a mail has words in the midst of it, too, and an answer that can be repeated */
	if (strcmp(o->ragent->listener, "smtp") != 0 && strcmp(o->ragent->listener, "repeats") != 0)
		ck_assert_int_ne(o->ragent->position.response, POSITION_PARTLY_DELIVERED);
	ck_assert_uint_le(download->sealed.len, sizeof o->ragent->download);
	memcpy(o->ragent->download, download->sealed.data, download->sealed.len);
	o->ragent->download_len = download->sealed.len;
}

static void on_adopted(struct fake_carrier *o, const Cssl__LinkAdopted *adopted)
{
	o->source = adopted->source;
	ck_assert_uint_eq(adopted->epoch, o->ragent->owner_count);
}

static void on_say(struct carrier *carrier, enum frame_type type, const ProtobufCMessage *m)
{
	struct fake_carrier *o = of(carrier);

	o->said[type]++;
	switch (type) {
	case FRAME_COPY: on_copy(o, (const Cssl__LinkCopy *)m); return;
	case FRAME_DOWNLOAD: on_download(o, (const Cssl__LinkDownload *)m); return;
	case FRAME_ADOPTED: on_adopted(o, (const Cssl__LinkAdopted *)m); return;
	default: on_live(o, type, (const Cssl__LinkLive *)m); return;
	}
}

static void on_refused(struct carrier *carrier, Cssl__LinkRefused__Reason reason, const char *detail)
{
	struct fake_carrier *o = of(carrier);

	o->said[FRAME_REFUSED]++;
	o->refused = reason;
	ck_assert_ptr_nonnull(detail);
}

static void on_retire(struct carrier *carrier)
{
	((struct fake_carrier *)carrier)->connection = NULL; /* the one word an earlier owner's carrier may hear */
}

static void on_flush(struct carrier *carrier)
{
}

static const struct carrier_ops fake_carrier_ops = {
	.reserve = on_reserve,
	.send = on_send,
	.consumed = on_consumed,
	.fin = on_fin,
	.end = on_carrier_end,
	.say = on_say,
	.flush = on_flush,
	.refused = on_refused,
	.retire = on_retire,
};

/* --- life --- */

void fake_ragent_start(struct fake_ragent *r, const char *listener, uint32_t window)
{
	memset(r, 0, sizeof *r);
	position_init(&r->position);
	randombytes_buf(r->id.bytes, sizeof r->id.bytes);
	r->listener = listener;
	r->window = window;
	r->kept = malloc(window + TLS_RECORD_MAX + FAKE_PAST_MAX);
	r->past = malloc(FAKE_PAST_MAX);
	r->queue = malloc(FAKE_QUEUE_MAX);
	ck_assert_ptr_nonnull(r->kept);
	ck_assert_ptr_nonnull(r->past);
	ck_assert_ptr_nonnull(r->queue);
}

static void forget(struct fake_carrier *o, enum end_reason reason)
{
	struct connection *c = o->connection;

	o->connection = NULL;
	if (c)
		connection_forget(c, reason);
}

void fake_ragent_stop(struct fake_ragent *r)
{
	for (unsigned i = 0; i < r->owner_count; i++)
		forget(&r->owners[i], END_CLIENT_RESET);
	copies_clear(&r->copies, NULL);
	free(r->kept);
	free(r->past);
	free(r->queue);
	r->kept = r->past = r->queue = NULL;
}

static struct fake_carrier *begin(struct fake_ragent *r)
{
	ck_assert_uint_lt(r->owner_count, FAKE_OWNERSHIPS_MAX);
	r->current = &r->owners[r->owner_count++];
	*r->current = (struct fake_carrier){
		.carrier.ops = &fake_carrier_ops, .ragent = r, .base = r->drained, .received = r->queued - r->drained
	};
	r->sent_len = 0;
	return r->current;
}

static ProtobufCBinaryData address(uint8_t last)
{
	uint8_t *bytes = malloc(4);

	memcpy(bytes, (uint8_t[]){ 192, 0, 2, last }, 4);
	return (ProtobufCBinaryData){ 4, bytes };
}

Cssl__Endpoints *fake_endpoints(void)
{
	Cssl__Endpoints *e = malloc(sizeof *e);

	cssl__endpoints__init(e);
	e->client_address = address(1);
	e->client_port = 40000;
	e->server_address = address(2);
	e->server_port = 443;
	return e;
}

int fake_ragent_open(struct fake_ragent *r, struct connection_home *home, Cssl__LinkOpen__Disposition disposition)
{
	struct fake_carrier *o = begin(r);
	Cssl__Endpoints *endpoints = fake_endpoints();

	o->connection = connection_open(home, &o->carrier, tls_listener_find(home->contexts, r->listener), &r->id,
		disposition, endpoints, &o->end_reason);
	cssl__endpoints__free_unpacked(endpoints, NULL);
	return o->connection != NULL;
}

/* --- records --- */

void fake_ragent_keep(struct fake_ragent *r, const uint8_t *records, size_t len)
{
	struct tls_record_header h;

	ck_assert_uint_le(r->kept_len + len, r->window + TLS_RECORD_MAX);
	memcpy(r->kept + r->kept_len, records, len);
	r->kept_len += len;
	for (size_t at = 0; at < len; at += TLS_RECORD_HEADER_LEN + h.length) {
		ck_assert_int_eq(tls_record_scan(records + at, len - at, &h), 0);
		r->kept_records++;
	}
}

void fake_records(struct connection *c, uint8_t *bytes, size_t len)
{
	struct tls_record_batch batch;
	struct tls_record_header bad;

	for (size_t used = 0; used < len; used += batch.len) {
		ck_assert_int_eq(tls_record_take(bytes + used, len - used, len, &batch, &bad), 0);
		ck_assert_uint_gt(batch.count, 0);
		connection_records(c, batch.records, batch.count);
	}
}

size_t fake_ragent_forward(struct fake_ragent *r, size_t max)
{
	static uint8_t given[1u << 20];
	struct tls_record_header h;
	size_t len = 0, unsent = r->kept_len - r->sent_len;
	struct connection *c = r->current->connection;

	if (!c || r->frozen == r->current)
		return 0;
	while (len < unsent && (len == 0 || len < max)) {
		ck_assert_int_eq(tls_record_scan(r->kept + r->sent_len + len, unsent - len, &h), 0);
		size_t record = TLS_RECORD_HEADER_LEN + h.length;
		if (len > 0 && len + record > max)
			break;
		len += record;
	}
	if (len == 0)
		return 0;
	memcpy(given, r->kept + r->sent_len, len); /* it may be changed in place */
	r->sent_len += len;
	fake_records(c, given, len);
	return len;
}

const uint8_t *fake_ragent_drain(struct fake_ragent *r, size_t max, size_t *len)
{
	static uint8_t taken[FAKE_QUEUE_MAX];

	*len = r->queue_len < max ? r->queue_len : max;
	memcpy(taken, r->queue, *len);
	memmove(r->queue, r->queue + *len, r->queue_len - *len);
	r->queue_len -= *len;
	r->drained += *len;
	return taken;
}

void fake_ragent_accept(struct fake_ragent *r)
{
	struct fake_carrier *o = r->current;
	const struct frame_accepted a = { .server_records = r->position.server_records,
		.drained = r->drained - o->base,
		.write_generation = r->position.write_generation };

	if (!o->connection || r->frozen == o)
		return;
	o->told = a.drained;
	ck_assert(connection_may_have_drained(o->connection, a.drained));
	connection_accepted(o->connection, &a);
}

/* --- moves --- */

void fake_ragent_ask_move(struct fake_ragent *r, const char *target)
{
	fake_ragent_ask_move_within(r, target, 0);
}

void fake_ragent_ask_move_within(struct fake_ragent *r, const char *target, uint32_t deadline_ms)
{
	Cssl__LinkMove m = CSSL__LINK_MOVE__INIT;

	m.target = (char *)target;
	m.next_epoch = r->owner_count + 1u;
	m.cause = CSSL__CAUSE__CAUSE_MOVE;
	m.deadline_ms = deadline_ms;
	connection_move(fake_owner(r), &m);
}

void fake_ragent_ask_rest(struct fake_ragent *r)
{
	Cssl__LinkMove m = CSSL__LINK_MOVE__INIT;

	m.cause = CSSL__CAUSE__CAUSE_REST;
	connection_move(fake_owner(r), &m);
}

void fake_ragent_detach(struct fake_ragent *r)
{
	if (r->frozen)
		forget(r->frozen, END_DONE);
	r->frozen = NULL;
}

static void fill_position(const struct fake_ragent *r, Cssl__Position *p)
{
	cssl__position__init(p);
	p->client_records = r->position.now.client_records;
	p->offset = r->offset;
	p->read_generation = r->position.now.read_generation;
	p->read_sequence = r->position.now.read_sequence;
	p->server_records = r->position.server_records;
	p->write_generation = r->position.write_generation;
	p->write_sequence = r->position.write_sequence;
}

void fake_ragent_lose(struct fake_ragent *r)
{
	forget(r->current, END_AGENT_LOST);
	r->current->backend = CSSL__BACKEND_HALF__BACKEND_NONE;
	return_to_checkpoint(r);
}

static void fill_takeover(struct fake_ragent *r, Cssl__LinkSslId *m)
{
	static const Cssl__ResponseState states[] = {
		[POSITION_AT_CHECKPOINT] = CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT,
		[POSITION_NOTHING_DELIVERED] = CSSL__RESPONSE_STATE__RESPONSE_NOTHING_DELIVERED,
		[POSITION_PARTLY_DELIVERED] = CSSL__RESPONSE_STATE__RESPONSE_PARTLY_DELIVERED,
	};

	m->response_state = r->response == RESPONSE_FORCED ? r->forced : states[r->position.response];
	if (r->position.response == POSITION_NOTHING_DELIVERED &&
		r->position.now.client_records != r->position.checkpoint.client_records)
		m->response_state = CSSL__RESPONSE_STATE__RESPONSE_NOT_REPLAYABLE;
	m->exposed_records = r->exposed;
	m->fate = r->fate;
	m->read_closed = r->position.now.read_closed;
	m->sealed_download = (ProtobufCBinaryData){ r->download_len, r->download };
}

int fake_ragent_adopt(struct fake_ragent *r, struct connection_home *home, Cssl__Cause cause)
{
	struct fake_carrier *before = r->current, *o = begin(r);
	Cssl__LinkSslId m = CSSL__LINK_SSL_ID__INIT;
	Cssl__Position p;

	fill_position(r, &p);
	m.response_records = r->position.response_records;
	m.response_bytes = r->position.response_bytes;
	m.connection_id = (ProtobufCBinaryData){ CONNECTION_ID_LEN, r->id.bytes };
	m.epoch = r->owner_count;
	m.cause = cause;
	m.position = &p;
	m.read_closed = before->read_closed;
	m.write_closed = before->write_closed;
	if (r->copies.current)
		m.sealed_copy = (ProtobufCBinaryData){ r->copies.current->len, r->copies.current->data };
	m.backend = before->backend;
	m.listener = (char *)r->listener;
	m.endpoints = fake_endpoints();
	m.undrained = r->queued - r->drained;
	if (cause == CSSL__CAUSE__CAUSE_TAKEOVER)
		fill_takeover(r, &m);
	size_t connections = home->table.count;
	struct connection *c = connection_adopt(home, &o->carrier, &m);
	cssl__endpoints__free_unpacked(m.endpoints, NULL);
	if (o->said[FRAME_REFUSED]) {
		ck_assert_ptr_null(c);
		ck_assert_uint_eq(home->table.count, connections);
		/* the next SSL_ID says again what the frozen owner said */
		o->backend = before->backend;
		o->read_closed = before->read_closed;
		o->write_closed = before->write_closed;
		return 0;
	}
	ck_assert_uint_eq(o->said[FRAME_ADOPTED], 1);
	o->connection = o->said[FRAME_END] ? NULL : c;
	r->offset = 0;
	if (r->frozen && r->frozen->connection && r->frozen->connection->state == CONNECTION_ENDED)
		r->frozen->connection = NULL;
	fake_ragent_detach(r);
	return 1;
}

struct connection *fake_owner(struct fake_ragent *r)
{
	ck_assert_msg(r->current->connection != NULL, "the connection has ended: %s",
		end_reason_text(r->current->end_reason));
	return r->current->connection;
}

unsigned fake_said(const struct fake_ragent *r, enum frame_type type)
{
	return r->current->said[type];
}
