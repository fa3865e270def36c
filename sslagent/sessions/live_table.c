/* live_table.c: which live part of a connection is the newest. */
#include "sslagent/sessions/live_table.h"

#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/connections_seen.h"

/* Connection ids are random. */
static uint64_t live_table_rank(const uint8_t *id)
{
	return wire_load_u64(id);
}

static const struct shelf_kind live_kind = {
	.object_len = offsetof(struct live_object, encoded),
	.id_at = offsetof(struct live_object, id),
	.id_len = CONNECTION_ID_LEN,
	.rank = live_table_rank,
	.expired = COUNT_LIVE_DROPPED,
	.evicted = COUNT_LIVE_EVICTED,
};

struct shelf *live_table_create(uint64_t bytes)
{
	return shelf_create(&live_kind, bytes);
}

const uint8_t *live_table_encoded(const struct shelved *o, size_t *len)
{
	const uint8_t *encoded = ((const struct live_object *)o)->encoded;

	*len = o->len - (size_t)(encoded - (const uint8_t *)o);
	return encoded;
}

/* Each owner has a higher epoch; each key change of an owner has a higher generation. Under the same keys the time
 * tells the export at the freeze from earlier exports. */
static bool live_table_is_newer(const struct live_part *l, const struct live_object *than)
{
	if (l->epoch != than->epoch)
		return l->epoch > than->epoch;
	if (l->read_generation == than->read_generation && l->write_generation == than->write_generation)
		return l->made_ms > than->exported_ms;
	return l->read_generation >= than->read_generation && l->write_generation >= than->write_generation;
}

static int live_table_put_locked(struct shelf *t, struct shelf_shard *shard, struct connections_seen *seen,
	const struct offer *offer, int64_t now_ms)
{
	const struct live_part *l = offer->obj->live;
	const int64_t expires_ms = offer->made_ms + (int64_t)l->remaining_s * 1000;
	struct shelved *o = shelf_find(t, shard, l->connection.bytes);

	/* Look up under the lock: the end of a connection is noted first; then its entry here is dropped. */
	if (expires_ms <= now_ms || connections_seen_stopped(seen, &l->connection))
		return CSSL_E_EXPIRED;
	if (o && !live_table_is_newer(l, (const struct live_object *)o))
		return CSSL_E_REPLAY;
	if (shelf_cost(t, offer->len) > shard->limit)
		return CSSL_E_FULL;
	if (o)
		shelf_remove(t, shard, o);
	int r = shelf_add(t, shard, l->connection.bytes, offer, offer->len, &o);
	if (r)
		return r;
	struct live_object *h = (struct live_object *)o;
	o->expires_ms = expires_ms;
	h->exported_ms = l->made_ms;
	h->read_generation = l->read_generation;
	h->write_generation = l->write_generation;
	h->epoch = l->epoch;
	memcpy(h->encoded, offer->encoded, offer->len);
	return 0;
}

int live_table_put(struct shelf *t, struct connections_seen *seen, const struct offer *offer, int64_t now_ms)
{
	struct shelf_shard *shard = shelf_lock(t, offer->obj->live->connection.bytes);
	int result = live_table_put_locked(t, shard, seen, offer, now_ms);

	shelf_unlock(shard);
	count(result ? COUNT_LIVE_REFUSED : COUNT_LIVE_STORED);
	return result;
}

int live_table_find(struct shelf *t, const struct live_wanted *wanted, int64_t now_ms, struct sess_obj *out)
{
	struct shelf_shard *shard = shelf_lock(t, wanted->id->bytes);
	const struct live_object *h = (const struct live_object *)shelf_find(t, shard, wanted->id->bytes);
	int r = CSSL_E_NOT_FOUND;

	if (h && h->shelved.expires_ms > now_ms && h->epoch < wanted->epoch_below &&
		h->read_generation == wanted->read_generation && h->write_generation == wanted->write_generation) {
		size_t len;
		const uint8_t *encoded = live_table_encoded(&h->shelved, &len);

		r = shelved_decode(&h->shelved, encoded, len, now_ms, out);
	}
	shelf_unlock(shard);
	return r;
}

static void live_table_remove(struct shelf *t, struct shelf_shard *shard, struct shelved *o)
{
	shelf_remove(t, shard, o);
	count(COUNT_LIVE_DROPPED);
}

void live_table_adopted(struct shelf *t, const struct live_adopted *adopted)
{
	struct shelf_shard *shard = shelf_lock(t, adopted->id->bytes);
	struct live_object *h = (struct live_object *)shelf_find(t, shard, adopted->id->bytes);

	if (h && h->epoch <= adopted->epoch) {
		h->shelved.from = adopted->owner;
		if (h->read_generation < adopted->read_generation || h->write_generation < adopted->write_generation)
			live_table_remove(t, shard, &h->shelved);
	}
	shelf_unlock(shard);
}

void live_table_drop(struct shelf *t, const struct connection_id *id)
{
	struct shelf_shard *shard = shelf_lock(t, id->bytes);
	struct shelved *o = shelf_find(t, shard, id->bytes);

	if (o)
		live_table_remove(t, shard, o);
	shelf_unlock(shard);
}

static bool is_of(const void *owner, const struct shelved *o)
{
	return o->from == *(const agent_index *)owner;
}

void live_table_drop_owner(struct shelf *t, agent_index owner)
{
	count_by(COUNT_LIVE_DROPPED, shelf_sweep(t, NULL, is_of, &owner));
}
