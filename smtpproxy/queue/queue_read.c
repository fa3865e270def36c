/* queue_read.c: an item that a backup held becomes an item in memory. A state may come before its message, so states
 * are applied when all has been read. */
#include "smtpproxy/queue/queue_inside.h"

#include <stdlib.h>
#include <string.h>

#include "net/log.h"
#include "net/log_pace.h"
#include "proto/error.h"

static void unreadable(struct queue *q, const struct backup *b, const char *field, size_t field_len)
{
	q->stats.unreadable++;
	log_paced(LOG_ERROR, NULL, "an item of the backup cannot be opened", "backup=%u field=%.*s", b->index,
		(int)(field_len < 64 ? field_len : 64), field);
}

static struct queue_destination *destination_of(struct queue *q, const struct content_message *m)
{
	return destination_get(&q->destinations, (const char *)m->destination.data, m->destination.len, 1);
}

/* The clock of the gateway that wrote it may have been ahead. */
static int64_t not_after(int64_t ms, int64_t most_ms)
{
	return ms < most_ms ? ms : most_ms;
}

static int take_message(struct queue *q, struct item *i, const uint8_t *plain, size_t len)
{
	struct content_message m;
	int r = content_message_read(&m, plain, len);

	if (r)
		return r;
	i->to = destination_of(q, &m);
	if (!i->to)
		return CSSL_E_NO_MEMORY;
	i->accepted_ms = not_after(m.accepted_ms, queue_now_ms(q));
	i->source = queue_source_of(q, m.envelope);
	i->to->count++;
	i->to->bytes += i->sealed_len;
	return 0;
}

static int take_decided(struct queue *q, struct item *i, const uint8_t *plain, size_t len)
{
	struct content_decided d;
	int r = content_decided_read(&d, plain, len);

	if (r)
		return r;
	i->accepted_ms = not_after(d.decided_ms, queue_now_ms(q));
	return queue_decided_enter(q, i, d.name);
}

static int take_plain(struct queue *q, struct item *i, const uint8_t *plain, size_t len)
{
	switch ((enum item_kind)i->kind) {
	case ITEM_MESSAGE: return take_message(q, i, plain, len);
	case ITEM_DECIDED: return take_decided(q, i, plain, len);
	case ITEM_ORDER: return queue_order_read(q, i, plain, len);
	case ITEM_GRAVE: return queue_grave_read(q, plain, len);
	default: return CSSL_E_RANGE;
	}
}

static int open_item(struct queue *q, struct item *i)
{
	size_t len = i->sealed_len < SEAL_OVERHEAD ? 0 : i->sealed_len - SEAL_OVERHEAD;
	uint8_t *plain = malloc(len + 1);
	int r = plain ? seal_open(q->seal, (char)i->kind, i->id, i->sealed, i->sealed_len, plain) : CSSL_E_NO_MEMORY;

	if (!r)
		r = take_plain(q, i, plain, len);
	free(plain);
	return r;
}

static int keep_state(struct queue *q, const struct backup *b, uint64_t id, const uint8_t *sealed, size_t len)
{
	uint8_t *copy;

	if (q->read_count == q->read_cap) {
		size_t cap = q->read_cap ? 2 * q->read_cap : 1024;
		struct read_state *read = realloc(q->read, cap * sizeof *read);

		if (!read)
			return CSSL_E_NO_MEMORY;
		q->read = read;
		q->read_cap = cap;
	}
	copy = malloc(len);
	if (!copy)
		return CSSL_E_NO_MEMORY;
	memcpy(copy, sealed, len);
	q->read[q->read_count++] = (struct read_state){ .id = id, .at = b->index, .sealed = copy, .len = len };
	return 0;
}

/* Its key may be missing, or it is damaged: it is never dropped, and only an operator can mend it. */
static void keep_opaque(struct queue *q, const struct backup *b, struct item *i)
{
	char field[ITEM_FIELD_LEN];

	item_move(i, ITEM_OPAQUE);
	q->stats.opaque++;
	item_field((enum item_kind)i->kind, i->id, field);
	unreadable(q, b, field, sizeof field);
}

/* At the start queue_bury() deletes it from the servers, too. Later the server is compared, which does that. */
static int is_new(struct queue *q, const struct item *i, uint64_t id)
{
	return !i && (q->state == QUEUE_READING || !queue_is_gone(q, id));
}

/* The copy of another server could not be opened. If this one can, it takes that one's place, also there (complete()):
 * the damaged one is not "seen" any more. */
static int mend(struct queue *q, const struct backup *b, struct item *i, const uint8_t *sealed, size_t len)
{
	uint8_t *copy = malloc(len), *damaged = i->sealed;
	const size_t damaged_len = i->sealed_len;
	int r;

	if (!copy)
		return CSSL_E_NO_MEMORY;
	memcpy(copy, sealed, len);
	item_set_sealed(&q->items, i, copy, len);
	r = open_item(q, i);
	if (r) {
		item_set_sealed(&q->items, i, damaged, damaged_len);
		free(copy);
		return r == CSSL_E_NO_MEMORY ? r : 0;
	}
	free(damaged);
	item_move(i, ITEM_STORING);
	q->stats.opaque--;
	i->seen = ITEM_FRESH | ITEM_MENDED;
	log_paced(LOG_WARNING, NULL, "a damaged copy of an item is replaced", "backup=%u id=%llu", b->index,
		(unsigned long long)i->id);
	return 0;
}

/* At the start two servers may show the same item. */
static int may_mend(const struct queue *q, const struct item *i, enum item_kind kind)
{
	return i && q->state == QUEUE_READING && i->state == ITEM_OPAQUE && i->kind == kind;
}

static int keep_item(
	struct queue *q, struct backup *b, enum item_kind kind, uint64_t id, const uint8_t *sealed, size_t len)
{
	struct item *i = item_find(&q->items, id);
	uint8_t *copy;
	int r = may_mend(q, i, kind) ? mend(q, b, i, sealed, len) : 0;

	if (r)
		return r;

	if (is_new(q, i, id)) {
		copy = malloc(len);
		if (!copy)
			return CSSL_E_NO_MEMORY;
		memcpy(copy, sealed, len);
		i = queue_make(q, kind, id, copy, len);
		if (!i)
			return CSSL_E_NO_MEMORY;
		i->seen = ITEM_FRESH;
		r = open_item(q, i);
		if (r == CSSL_E_NO_MEMORY) {
			item_remove(&q->items, i);
			return r;
		}
		if (r)
			keep_opaque(q, b, i);
	}
	if (i)
		i->seen |= (uint8_t)(1u << b->index);
	return 0;
}

static int note_told(struct queue *q, uint64_t id)
{
	if (q->told_count == q->told_cap) {
		size_t cap = q->told_cap ? 2 * q->told_cap : 1024;
		uint64_t *told = realloc(q->told, cap * sizeof *told);

		if (!told)
			return CSSL_E_NO_MEMORY;
		q->told = told;
		q->told_cap = cap;
	}
	q->told[q->told_count++] = id;
	return 0;
}

/* The server that shows the messages themselves has no copy of @i that can be opened, or has not shown it yet. */
static int is_wanted(const struct item *i)
{
	return !i || i->state == ITEM_OPAQUE;
}

static int keep_name(struct queue *q, const struct backup *b, uint64_t id)
{
	struct item *i = item_find(&q->items, id);

	q->told_by = b->index;
	if (is_wanted(i))
		return note_told(q, id);
	i->seen |= (uint8_t)(1u << b->index);
	return 0;
}

int queue_fetch_told(struct queue *q)
{
	size_t missing = 0;

	for (size_t n = 0; n < q->told_count; n++) {
		struct item *i = item_find(&q->items, q->told[n]);

		if (is_wanted(i))
			q->told[missing++] = q->told[n];
		else
			i->seen |= (uint8_t)(1u << q->told_by);
	}
	q->told_count = 0; /* they are not told again */
	if (!missing)
		return 0;
	q->reads |= 1u << q->told_by;
	backup_fetch(&q->backups[q->told_by], q->told, missing);
	return 1;
}

void queue_told_clear(struct queue *q)
{
	free(q->told);
	q->told = NULL;
	q->told_count = q->told_cap = 0;
}

static int take(struct queue *q, struct backup *b, enum item_kind kind, uint64_t id, const uint8_t *value, size_t len)
{
	if (!value)
		return keep_name(q, b, id);
	return kind == ITEM_STATE ? keep_state(q, b, id, value, len) : keep_item(q, b, kind, id, value, len);
}

void queue_read_item(
	struct queue *q, struct backup *b, const char *field, size_t field_len, const uint8_t *value, size_t len)
{
	enum item_kind kind;
	uint64_t id;
	int r = item_field_parse(field, field_len, &kind, &id);

	if (!r)
		r = take(q, b, kind, id, value, len);
	if (r == CSSL_E_NO_MEMORY)
		backup_give_up(b, "out of memory for its items");
	else if (r)
		unreadable(q, b, field, field_len);
}

/* The state that was read before may have said otherwise. */
static void hold(struct item *i, unsigned held)
{
	const enum item_state to = held ? ITEM_HELD : ITEM_STORING;

	if (i->state != to)
		item_move(i, to);
}

/* Of two states of one message the later one counts: the servers that are united may differ by what was under way, or
 * by what one of them got alone. */
static int apply(struct queue *q, struct item *i, struct read_state *s)
{
	uint8_t *plain = malloc(s->len);
	struct content_state state;
	int r = plain ? seal_open(q->seal, ITEM_STATE, s->id, s->sealed, s->len, plain) : CSSL_E_NO_MEMORY;

	r = r ? r : content_state_read(&state, plain, s->len - SEAL_OVERHEAD);
	if (!r && (!i->note || !content_state_is_earlier(&state, i->attempts, i->steps))) {
		item_set_note(&q->items, i, s->sealed, s->len);
		s->sealed = NULL;
		i->attempts = state.attempts;
		i->steps = state.steps;
		i->due_ms = not_after(state.due_ms, queue_now_ms(q) + q->conf.defer_most_ms);
		hold(i, state.held);
	}
	free(plain);
	return r;
}

static void keep_note(struct queue *q, struct item *i, struct read_state *s)
{
	item_set_note(&q->items, i, s->sealed, s->len);
	s->sealed = NULL;
}

/* queue_open() holds the message, unless another state of it can be read. */
static void not_applied(struct queue *q, struct item *i, struct read_state *s)
{
	q->stats.unreadable++;
	log_paced(LOG_ERROR, NULL, "the state of a message cannot be opened", "id=%llu", (unsigned long long)i->id);
	if (!i->note)
		keep_note(q, i, s);
}

static int is_apart(const struct queue *q, unsigned at)
{
	return q->shared.apart[at][0] != '\0';
}

/* One that is about to be claimed is read next. */
static int is_read_late(const struct queue *q, unsigned at)
{
	return q->reads & 1u << at || (is_apart(q, at) && q->backups[at].state == BACKUP_CLAIMING);
}

/* A server that has not shown @i yet may still do so, with a later state, or show its grave. But nothing waits for one
 * that is absent and has not shown it. */
int queue_is_half_read(const struct queue *q, const struct item *i)
{
	for (unsigned n = 0; n < BACKUPS; n++)
		if (is_read_late(q, n) || (is_apart(q, n) && i->seen & 1u << n))
			return 1;
	return 0;
}

/* A server that has the state of a message has the message, which may come later. */
static void note_half_read(struct queue *q)
{
	for (size_t n = 0; n < q->read_count; n++) {
		struct item *i = is_apart(q, q->read[n].at) ? item_find(&q->items, q->read[n].id) : NULL;

		if (i && i->seen & ITEM_FRESH)
			i->seen |= (uint8_t)(1u << q->read[n].at);
	}
}

/* 1: it has to wait. */
static int apply_one(struct queue *q, struct read_state *s)
{
	struct item *i = item_find(&q->items, s->id);

	if (i ? i->seen & ITEM_FRESH && queue_is_half_read(q, i) : is_apart(q, s->at))
		return 1;
	if (i && i->state == ITEM_OPAQUE)
		keep_note(q, i, s);
	else if (i && i->seen & ITEM_FRESH && apply(q, i, s))
		not_applied(q, i, s);
	free(s->sealed);
	return 0;
}

void queue_apply_states(struct queue *q)
{
	size_t waiting = 0;

	note_half_read(q);
	for (size_t n = 0; n < q->read_count; n++)
		if (apply_one(q, &q->read[n]))
			q->read[waiting++] = q->read[n];
	q->read_count = waiting;
	if (waiting)
		return;
	free(q->read);
	q->read = NULL;
	q->read_cap = 0;
}

static int by_id(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* The list of all in the order of ids, which is the order in which they were accepted. Without memory it stays as the
 * servers gave it. */
void queue_sort(struct queue *q)
{
	size_t count = 0;
	struct item **all = malloc((q->items.count + 1) * sizeof(struct item *));

	if (!all)
		return;
	for (struct item *i = q->items.oldest; i; i = i->newer)
		all[count++] = i;
	qsort(all, count, sizeof(struct item *), by_id);
	for (size_t n = 0; n < count; n++) {
		all[n]->older = n ? all[n - 1] : NULL;
		all[n]->newer = n + 1 < count ? all[n + 1] : NULL;
	}
	q->items.oldest = count ? all[0] : NULL;
	q->items.newest = count ? all[count - 1] : NULL;
	free(all);
}
