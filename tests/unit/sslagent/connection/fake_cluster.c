/* fake_cluster.c: see fake_cluster.h. */
#include "tests/unit/sslagent/connection/fake_cluster.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/error.h"

static int same(const struct connection_id *a, const struct connection_id *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

/* --- pulls --- */

struct session_pull {
	struct cluster *cluster;
};

static struct session_pull the_pull;

static struct session_pull *pull(struct session_source *s, struct worker *w, const uint8_t id[static SESSION_ID_LEN],
	void (*done)(void *ctx, enum session_answer answer), void *ctx)
{
	struct cluster *c = (struct cluster *)s;

	ck_assert(!c->pulled);
	c->pulls++;
	c->pulled = done;
	c->pull_ctx = ctx;
	the_pull.cluster = c;
	return &the_pull;
}

static void pull_cancel(struct session_source *s, struct session_pull *p)
{
	struct cluster *c = (struct cluster *)s;

	ck_assert_ptr_eq(p->cluster, c);
	ck_assert(c->pulled);
	c->pulls_cancelled++;
	c->pulled = NULL;
}

void fake_cluster_answer_pull(struct cluster *c, enum session_answer answer)
{
	void (*pulled)(void *ctx, enum session_answer answer) = c->pulled;

	ck_assert(pulled);
	c->pulled = NULL;
	memory_source_place(&c->source, answer == SESSION_FOUND ? MEMORY_HERE : MEMORY_ELSEWHERE);
	if (answer == SESSION_ABSENT)
		memory_source_stop(&c->source);
	pulled(c->pull_ctx, answer);
}

/* --- life --- */

void fake_cluster_start(struct cluster *c, const char *name, struct cluster *other)
{
	memset(c, 0, sizeof *c);
	memory_source_start(&c->source, name);
	c->source.source.pull = pull;
	c->source.source.pull_cancel = pull_cancel;
	c->other = other;
	c->now_ms = FAKE_START_MS;
	c->seen = connections_seen_create(FAKE_SEEN_MAX, FAKE_KEEP_MS, c->now_ms - 1);
	ck_assert_ptr_nonnull(c->seen);
}

void fake_cluster_forget(struct cluster *c)
{
	connections_seen_destroy(c->seen);
	c->now_ms += 10;
	c->seen = connections_seen_create(FAKE_SEEN_MAX, FAKE_KEEP_MS, c->now_ms - 1);
	ck_assert_ptr_nonnull(c->seen);
}

void fake_cluster_stop(struct cluster *c)
{
	ck_assert(!c->pulled);
	for (size_t i = 0; i < c->heard_count; i++)
		free(c->heard[i].bytes);
	for (size_t i = 0; i < c->leaving_count; i++)
		passed_backend_destroy(&c->leaving[i].backend);
	for (size_t i = 0; i < c->arrived_count; i++)
		passed_backend_destroy(&c->arrived[i]);
	memory_source_stop(&c->source);
	connections_seen_destroy(c->seen);
}

struct session_source *cluster_session_source(struct cluster *c)
{
	return &c->source.source;
}

/* --- live parts --- */

static void note(struct cluster *c, const struct connection_id *id, const struct seen_mark *at)
{
	connections_seen_note(c->seen, id, at, c->now_ms);
	if (c->broadcast == BROADCAST_HEARD)
		connections_seen_note(c->other->seen, id, at, c->other->now_ms);
}

int cluster_share_live(struct cluster *c, struct worker *w, const struct sess_obj *obj)
{
	struct cluster *to = c->other;

	struct seen_mark at = { .epoch = obj->live->epoch };

	c->shared++;
	ck_assert_ptr_nonnull(obj->live);
	if (obj->live->exported == EXPORT_AT_FREEZE) {
		at.write_generation = obj->live->write_generation;
		at.write_sequence = obj->live->write_sequence;
	}
	note(c, &obj->live->connection, &at);
	if (c->broadcast == BROADCAST_LOST)
		return 0;
	if (to->heard_count == FAKE_HEARD_MAX) { /* the oldest makes room */
		free(to->heard[0].bytes);
		memmove(&to->heard[0], &to->heard[1], --to->heard_count * sizeof to->heard[0]);
	}
	struct fake_heard *h = &to->heard[to->heard_count++];
	*h = (struct fake_heard){ .connection = obj->live->connection,
		.len = (size_t)sess_obj_encoded_len(obj),
		.epoch = obj->live->epoch,
		.read_generation = obj->live->read_generation,
		.write_generation = obj->live->write_generation };
	h->bytes = malloc(h->len);
	ck_assert_int_gt(sess_obj_encode(obj, h->bytes, h->len), 0);
	return 0;
}

int cluster_find_live(struct cluster *c, const struct connection_id *id, uint16_t epoch_below, uint32_t read_generation,
	uint32_t write_generation, struct sess_obj *out)
{
	for (size_t i = c->heard_count; i > 0; i--) {
		const struct fake_heard *h = &c->heard[i - 1];
		if (same(&h->connection, id) && h->epoch < epoch_below && h->read_generation == read_generation &&
			h->write_generation == write_generation)
			return sess_obj_decode(h->bytes, h->len, out);
	}
	return CSSL_E_NOT_FOUND;
}

void fake_cluster_owned(struct cluster *c, const struct connection_id *id, uint16_t epoch)
{
	note(c, id, &(struct seen_mark){ .epoch = epoch });
}

int fake_cluster_try(struct cluster *c, const struct connection_id *id, uint16_t epoch)
{
	const struct seen_claim claim = { .at = { epoch, UINT32_MAX, 0 }, .start = CLAIM_BEGINS };

	return cluster_claim(c, id, &claim);
}

int64_t cluster_shared_clock_ms(const struct cluster *c)
{
	return c->now_ms;
}

int64_t cluster_made_ms(const struct cluster *c, const struct live_part *part)
{
	if (part->made_ms == 0)
		return SEEN_MADE_UNKNOWN;
	return part->made_ms;
}

void cluster_leave(struct cluster *c, const struct connection_id *id, uint16_t epoch)
{
	connections_seen_leave(c->seen, id, epoch);
}

void cluster_note(struct cluster *c, const struct connection_id *id, const struct seen_mark *at)
{
	connections_seen_note(c->seen, id, at, c->now_ms);
}

int cluster_claim(struct cluster *c, const struct connection_id *id, const struct seen_claim *claim)
{
	return connections_seen_claim(c->seen, id, claim, c->now_ms);
}

bool cluster_knows(struct cluster *c, const struct connection_id *id, int64_t made_ms)
{
	return connections_seen_knows(c->seen, id, made_ms);
}

void cluster_tell_adopted(struct cluster *c, struct worker *w, const struct connection_id *id,
	const struct seen_mark *at, uint32_t read_generation, enum seen_doubt doubt)
{
	c->adopted++;
	note(c, id, at);
	if (c->broadcast == BROADCAST_HEARD && doubt)
		connections_seen_hear(c->other->seen, id, at, SEEN_OWN_WORD, doubt, c->other->now_ms);
}

void cluster_tell_stopped(struct cluster *c, struct worker *w, const struct connection_id *id,
	const struct seen_mark *at, enum seen_stop stop)
{
	c->gone += stop == SEEN_ENDED;
	c->rested += stop == SEEN_RESTS;
	connections_seen_stop(c->seen, id, at, stop, c->now_ms);
	if (c->broadcast == BROADCAST_HEARD)
		connections_seen_stop(c->other->seen, id, at, stop, c->other->now_ms);
}

/* --- backends --- */

bool cluster_can_pass_to(const struct cluster *c, const char *target)
{
	return c->host == PASSES;
}

void cluster_pass_backend(struct cluster *c, struct worker *w, const char *target, struct passed_backend *p,
	void (*done)(void *ctx, int error), void *ctx)
{
	ck_assert_str_eq(target, c->other->source.source.origin);
	ck_assert_uint_lt(c->leaving_count, FAKE_PASSED_MAX);
	c->leaving[c->leaving_count++] = (struct fake_pass){ .backend = *p, .done = done, .ctx = ctx };
	*p = (struct passed_backend){ .fd = -1 };
}

void fake_cluster_finish_passes(struct cluster *c, int error)
{
	while (c->leaving_count > 0) {
		struct fake_pass pass = c->leaving[--c->leaving_count];
		if (error) {
			passed_backend_destroy(&pass.backend);
		} else {
			ck_assert_uint_lt(c->other->arrived_count, FAKE_PASSED_MAX);
			c->other->arrived[c->other->arrived_count++] = pass.backend;
		}
		pass.done(pass.ctx, error);
	}
}

int cluster_take_passed(struct cluster *c, const struct connection_id *id, uint16_t epoch, struct passed_backend *out)
{
	for (size_t i = 0; i < c->arrived_count; i++) {
		if (!same(&c->arrived[i].connection, id) || c->arrived[i].next_epoch != epoch)
			continue;
		*out = c->arrived[i];
		c->arrived[i] = c->arrived[--c->arrived_count];
		return 0;
	}
	return CSSL_E_NOT_FOUND;
}

void passed_backend_destroy(struct passed_backend *p)
{
	free(p->to_backend);
	free(p->from_backend);
	free(p->service_state);
	if (p->fd >= 0)
		close(p->fd);
	*p = (struct passed_backend){ .fd = -1 };
}
