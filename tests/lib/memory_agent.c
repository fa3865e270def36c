/* memory_agent.c */
#include "tests/lib/memory_agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/tls/live_internal.h"
#include "sslagent/tls/tls_contexts.h"

void memory_conf_fill(struct memory_conf *c, struct test_identity *const identities[], size_t count)
{
	*c = (struct memory_conf){ 0 };
	for (size_t i = 0; i < count; i++) {
		static char name[MEMORY_CERTIFICATES_MAX][24];
		snprintf(name[i], sizeof(name[i]), "c%zu", i);
		c->names[i] = name[i];
		c->certificates[i] = (struct conf_certificate){
			.name = name[i], .chain = identities[i]->chain_path, .key = identities[i]->key_path
		};
		c->marks[2 * i] = (struct conf_mark){ &c->certificates[i].chain, 10 };
		c->marks[2 * i + 1] = (struct conf_mark){ &c->certificates[i].key, 10 };
	}
	c->listener = (struct conf_listener){ .name = (char *)"web",
		.alpn = c->alpn,
		.tls = { .version_min = 0x0303,
			.version_max = 0x0304,
			.certificates = c->names,
			.certificate_count = count,
			.tickets = 1,
			.session_lifetime_s = 7200 } };
	c->marks[2 * count] = (struct conf_mark){ &c->listener.name, 20 };
	c->conf = (struct conf){ .file = { (char *)"test.yaml", c->marks, 2 * count + 1, 2 * count + 1 },
		.own_provider = CONF_ON,
		.certificates = c->certificates,
		.certificate_count = count,
		.listeners = &c->listener,
		.listener_count = 1 };
}

int memory_agent_start(struct memory_agent *a, struct tls_contexts *contexts, struct live_pool *pool)
{
	struct handshake_params params = { .client = { .bytes = { 192, 0, 2, 1 }, .len = 4 } };

	*a = (struct memory_agent){ .listener = tls_listener_find(contexts, "web"), .pool = pool };
	memset(params.connection.bytes, 0x42, CONNECTION_ID_LEN);
	a->handshake = handshake_create(contexts, a->listener, &params);
	a->input = malloc(TLS_RECORD_MAX);
	a->output_cap = 1u << 20;
	a->output = malloc(a->output_cap);
	return a->handshake && a->input && a->output ? 0 : CSSL_E_NO_MEMORY;
}

void memory_agent_stop(struct memory_agent *a)
{
	handshake_destroy(a->handshake);
	live_destroy(a->live);
	free(a->input);
	free(a->output);
}

static uint8_t *room(struct memory_agent *a, size_t len)
{
	if (a->output_len + len > a->output_cap)
		abort();
	return a->output + a->output_len;
}

static void took(struct memory_agent *a, ptrdiff_t len)
{
	if (len < 0)
		abort();
	a->output_len += (size_t)len;
}

void memory_agent_update_keys(struct memory_agent *a)
{
	took(a, live_seal_key_update(a->live, room(a, LIVE_SMALL_RECORD_MAX)));
	live_committed(a->live, live_position(a->live).write_generation);
}

void memory_agent_close(struct memory_agent *a)
{
	took(a, live_seal_alert(a->live, TLS_ALERT_WARNING, TLS_ALERT_CLOSE_NOTIFY, room(a, LIVE_SMALL_RECORD_MAX)));
}

static void answer_dues(struct memory_agent *a)
{
	if (live_due(a->live) == LIVE_KEY_UPDATE_DUE)
		memory_agent_update_keys(a);
	if (live_due(a->live) == LIVE_WARNING_DUE)
		took(a, live_seal_alert(a->live, TLS_ALERT_WARNING, TLS_ALERT_NO_RENEGOTIATION,
				room(a, LIVE_SMALL_RECORD_MAX)));
}

void memory_agent_say(struct memory_agent *a, const void *data, size_t len)
{
	size_t max = live_fragment_max(a->live), used = 0;

	do {
		size_t n = len - used < max ? len - used : max;
		answer_dues(a);
		took(a, live_seal(a->live, (const uint8_t *)data + used, n, room(a, n + live_overhead(a->live))));
		used += n;
	} while (used < len);
}

static void feed_live(struct memory_agent *a, const struct tls_record *record)
{
	struct live_record r;

	a->violation = live_open(a->live, record, a->now_ms, &r);
	if (a->violation < 0) {
		took(a, live_seal_alert(
				a->live, TLS_ALERT_FATAL, live_alert_owed(a->live), room(a, LIVE_SMALL_RECORD_MAX)));
		a->state = AGENT_FAILED;
		return;
	}
	if (r.content == LIVE_DATA && r.len > 0 && !(live_ends(a->live) & LIVE_WRITE_CLOSED))
		memory_agent_say(a, r.data, r.len);
	answer_dues(a);
}

static void export(struct memory_agent *a)
{
	struct sess_obj obj;

	if (handshake_export(a->handshake, &obj, &a->handshake_facts) < 0) {
		a->state = AGENT_FAILED;
		return;
	}
	a->facts = obj.facts;
	a->part = *obj.live;
	a->certificate_len = obj.certificate_len;
	if (obj.certificate)
		memcpy(a->certificate, obj.certificate, obj.certificate_len);
	struct live_position at = { 0, 0, a->part.read_sequence, a->part.write_sequence };
	if (live_create(a->pool, &a->part, a->facts.cipher_suite, &at, 1, LIVE_CONTINUES, &a->live) < 0)
		abort();
	a->state = AGENT_OWNS;
}

static void after_step(struct memory_agent *a, int step)
{
	const uint8_t *data;
	size_t len = handshake_output(a->handshake, &data);

	if (len > 0)
		memcpy(room(a, len), data, len);
	handshake_output_taken(a->handshake, len);
	took(a, (ptrdiff_t)len);
	if (step == HANDSHAKE_DONE)
		export(a);
	else if (step == HANDSHAKE_PARKED)
		a->state = AGENT_IS_PARKED;
	else if (step < 0) {
		snprintf(a->error, sizeof(a->error), "%s", handshake_error(a->handshake));
		a->state = AGENT_FAILED;
	}
}

static void feed_record(struct memory_agent *a, const struct tls_record *record)
{
	if (a->state == AGENT_SHAKES)
		after_step(a, handshake_feed(a->handshake, record->bytes, tls_record_len(record)));
	else if (a->state == AGENT_OWNS)
		feed_live(a, record);
}

/* No carrier would give this as a record. */
static void feed_violation(struct memory_agent *a)
{
	if (a->state == AGENT_SHAKES)
		after_step(a, handshake_feed(a->handshake, a->input, a->input_len));
	else
		a->state = AGENT_FAILED;
}

void memory_agent_feed(struct memory_agent *a, const uint8_t *bytes, size_t len)
{
	struct tls_record_batch batch;
	struct tls_record_header bad;

	for (size_t i = 0; i < len; i++) {
		a->input[a->input_len++] = bytes[i];
		int r = tls_record_take(a->input, a->input_len, a->input_len, &batch, &bad);
		if (r == 0 && batch.count == 0)
			continue;
		if (r < 0)
			feed_violation(a);
		else
			feed_record(a, &batch.records[0]);
		a->input_len = 0;
	}
}

void memory_agent_continue(struct memory_agent *a, enum session_answer answer)
{
	a->state = AGENT_SHAKES;
	handshake_pulled(a->handshake, answer);
	after_step(a, handshake_continue(a->handshake));
}

void memory_agent_move(struct memory_agent *a, struct live_pool *pool, enum live_start start)
{
	static uint8_t bytes[SESS_OBJ_LEN_MAX];
	struct live_part part;
	struct sess_obj obj = { .facts = a->facts, .live = &part }, got;
	uint16_t epoch = (uint16_t)(a->live->epoch + 1);
	unsigned ends = live_ends(a->live);

	live_freeze(a->live, &part);
	ptrdiff_t len = sess_obj_encode(&obj, bytes, sizeof(bytes));
	live_destroy(a->live);
	if (len < 0 || sess_obj_decode(bytes, (size_t)len, &got) < 0)
		abort();
	struct live_position at = { part.read_generation, part.write_generation, part.read_sequence,
		part.write_sequence };
	if (live_create(pool, got.live, got.facts.cipher_suite, &at, epoch, start, &a->live) < 0)
		abort();
	live_restore_ends(a->live, ends);
	sess_obj_destroy(&got);
	a->pool = pool;
}

static size_t carry_to_agent(struct memory_client *c, struct memory_agent *a, size_t step)
{
	const uint8_t *data;
	size_t len = memory_client_output(c, &data);
	size_t n = step && step < len ? step : len;

	if (a->state == AGENT_IS_PARKED)
		return 0;
	memory_agent_feed(a, data, n);
	memory_client_output_taken(c, n);
	return n;
}

static size_t carry_to_client(struct memory_client *c, struct memory_agent *a, size_t step)
{
	size_t n = step && step < a->output_len ? step : a->output_len;

	memory_client_feed(c, a->output, n);
	memmove(a->output, a->output + n, a->output_len - n);
	a->output_len -= n;
	return n;
}

size_t memory_exchange(struct memory_client *c, struct memory_agent *a, size_t step, uint8_t *got, size_t cap)
{
	size_t have = 0, moved;
	ptrdiff_t n;

	do {
		if (!SSL_is_init_finished(memory_client_ssl(c)))
			memory_client_handshake(c);
		moved = carry_to_agent(c, a, step);
		moved += carry_to_client(c, a, step);
		while ((n = memory_client_read(c, got + have, cap - have)) > 0)
			have += (size_t)n;
	} while (moved > 0);
	return have;
}
