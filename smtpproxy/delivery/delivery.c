/* delivery.c: starts couriers while there are messages, room for one more, and the gateway holds the lease. Only lines
 * at which something happened are looked at: the queue may have 100,000 destinations. */
#include "smtpproxy/delivery/delivery.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "net/loop/timer.h"
#include "net/memory/container_of.h"
#include "net/report/log.h"
#include "net/report/log_pace.h"
#include "smtpproxy/delivery/courier.h"
#include "smtpproxy/delivery/probe.h"
#include "smtpproxy/outward/outward.h"

#define LOOK_MS 250u

/* How often a line tries for a place of its receiver while none is free: another line may have got one for the same
 * receiver, and its message may expire. All lines together try at most about 100 times a second. */
#define PLACE_MS      5000u
#define PLACE_EACH_MS 10u

static uint8_t source_key[crypto_shorthash_KEYBYTES]; /* so that no sender can choose the turn of another one */

enum delivery_state { DELIVERY_NEW, DELIVERY_RUNS, DELIVERY_STOPS, DELIVERY_STOPPED };

/* Which lines the next turn looks at. ALL_LINES: memory for the note of a line was short, or a limit rose. */
enum delivery_scope { DELIVERY_NOTED_LINES, DELIVERY_ALL_LINES };

/* RESTS: nothing is to do until a message comes or a courier ends. */
enum delivery_look { DELIVERY_RESTS, DELIVERY_LOOKS };

/* MISSED: limits.destinations were in use when its last courier looked for a place of its receiver. */
enum delivery_place { DELIVERY_PLACE_HOPED, DELIVERY_PLACE_MISSED };

TAILQ_HEAD(delivery_looks, delivery_line);

/* The deliveries to one destination of the queue. */
struct delivery_line {
	struct delivery *delivery;
	struct table_link link;
	TAILQ_ENTRY(delivery_line) look_next;
	enum delivery_look look;
	enum delivery_place place;
	uint64_t try_ms; /* MISSED: until then it waits for a place that is free */
	unsigned under_way;
	char name[];
};

struct delivery {
	struct delivery_parts parts;
	struct timer *timer;
	struct turn_end turn;
	struct deadline deadline;
	struct couriers couriers;
	struct table lines;               /* by name: with couriers, or to be looked at */
	struct delivery_looks now, later; /* at the end of the turn; when the timer comes */
	enum delivery_scope scope;
	unsigned without_place; /* lines */
	enum delivery_state state;
	void (*done)(void *ctx);
	void *done_ctx;
};

static struct delivery_line *delivery_line_of(struct table_link *link)
{
	return link ? container_of(link, struct delivery_line, link) : NULL;
}

static struct delivery_line *line_of(struct delivery *d, const char *name)
{
	struct delivery_line *l;
	uint64_t hash;

	crypto_shorthash((uint8_t *)&hash, (const uint8_t *)name, strlen(name), source_key);
	l = delivery_line_of(table_first(&d->lines, hash));
	while (l && strcmp(l->name, name))
		l = delivery_line_of(table_next(&l->link));
	if (l)
		return l;
	l = calloc(1, sizeof *l + strlen(name) + 1);
	if (!l || table_add(&d->lines, &l->link, hash)) {
		free(l);
		return NULL;
	}
	l->delivery = d;
	strcpy(l->name, name);
	return l;
}

static void note_line(struct delivery_looks *when, struct delivery_line *l)
{
	if (l->look == DELIVERY_LOOKS)
		return;
	l->look = DELIVERY_LOOKS;
	TAILQ_INSERT_TAIL(when, l, look_next);
}

static int note_destination(void *ctx, const struct queue_destination *to)
{
	struct delivery *d = ctx;
	struct delivery_line *l = to->ready ? line_of(d, to->name) : NULL;

	if (l)
		note_line(&d->now, l);
	else if (to->ready)
		d->scope = DELIVERY_ALL_LINES;
	return 0;
}

static void hope_for_place(struct delivery *d, struct delivery_line *l)
{
	d->without_place -= l->place == DELIVERY_PLACE_MISSED;
	l->place = DELIVERY_PLACE_HOPED;
}

static void forget_line(struct delivery *d, struct delivery_line *l)
{
	hope_for_place(d, l);
	table_remove(&d->lines, &l->link);
	free(l);
}

static void log_no_memory(const struct delivery_line *l)
{
	log_paced(LOG_WARNING, NULL, "a line waits for memory", "line=%s", l->name);
}

/* A courier of the line has found no place, or no memory. */
static void miss_place(struct delivery *d, struct delivery_line *l)
{
	uint64_t in_ms;

	if (!outward_is_full(d->parts.outward)) {
		log_no_memory(l);
		return;
	}
	d->parts.counters->no_place++;
	if (l->place == DELIVERY_PLACE_HOPED) {
		d->without_place++;
		log_paced(LOG_WARNING, NULL, "a line waits for a place of its receiver",
			"line=%s receivers=%u remedy=\"raise limits.destinations\"", l->name,
			outward_count(d->parts.outward));
	}
	in_ms = (uint64_t)d->without_place * PLACE_EACH_MS;
	l->place = DELIVERY_PLACE_MISSED;
	l->try_ms = worker_now_ms(d->parts.worker) + (in_ms > PLACE_MS ? in_ms : PLACE_MS);
}

static void on_line_courier_over(struct courier *c, enum courier_line when)
{
	struct delivery_line *l = c->sender;
	struct delivery *d = l->delivery;

	l->under_way--;
	if (when == COURIER_LINE_NOW)
		hope_for_place(d, l);
	else
		miss_place(d, l);
	note_line(when == COURIER_LINE_NOW ? &d->now : &d->later, l);
}

static const struct courier_errand line_errand = { .task = COURIER_DELIVERS, .on_over = on_line_courier_over };

/* 0: it took a message, which is under way. Else why not, as queue_take(). LATER: its receiver has no place, or the
 * message's delivery is over already. A line with couriers has its place. */
static int start_one(struct delivery *d, struct delivery_line *l)
{
	const struct content_bytes name = { (const uint8_t *)l->name, strlen(l->name) };
	const unsigned before = l->under_way;
	struct queue_taken mail;
	struct courier *c;
	int r;

	if (!l->under_way && l->place == DELIVERY_PLACE_MISSED && worker_now_ms(d->parts.worker) < l->try_ms &&
		outward_is_full(d->parts.outward))
		return QUEUE_LATER;
	r = queue_take(d->parts.queue, name, &mail);
	if (r)
		return r;
	c = courier_create(&d->parts, &line_errand, l, &mail);
	if (!c) {
		log_no_memory(l);
		queue_put_back(d->parts.queue, mail.id, 0, QUEUE_CLEAR);
		return QUEUE_LATER;
	}
	l->under_way++;
	courier_start(c, l->name);
	return l->under_way > before ? 0 : QUEUE_LATER;
}

/* When a courier ends, its line is looked at again. */
static void delivery_look_at(struct delivery *d, struct delivery_line *l)
{
	int r = 0;

	while (!r && l->under_way < d->parts.conf->queue.deliveries)
		r = start_one(d, l);
	if (r && r != QUEUE_NONE)
		note_line(queue_may_take(d->parts.queue) ? &d->later : &d->now, l);
	else if (!l->under_way && l->look == DELIVERY_RESTS)
		forget_line(d, l);
}

/* When no line may take a message, those that are left keep their turns for the time when queue_may_take() again. */
static void look_at_lines(struct delivery *d)
{
	struct delivery_looks lines = TAILQ_HEAD_INITIALIZER(lines);
	struct delivery_line *l;

	if (d->scope == DELIVERY_ALL_LINES) {
		d->scope = DELIVERY_NOTED_LINES;
		queue_each_destination(d->parts.queue, note_destination, d);
	}
	TAILQ_CONCAT(&lines, &d->now, look_next);
	while ((l = TAILQ_FIRST(&lines)) && queue_may_take(d->parts.queue)) {
		TAILQ_REMOVE(&lines, l, look_next);
		l->look = DELIVERY_RESTS;
		delivery_look_at(d, l);
	}
	TAILQ_CONCAT(&lines, &d->now, look_next);
	TAILQ_CONCAT(&d->now, &lines, look_next);
}

static void on_delivery_turn_end(struct turn_end *t)
{
	struct delivery *d = container_of(t, struct delivery, turn);

	if (d->state == DELIVERY_RUNS && queue_may_deliver(d->parts.queue))
		look_at_lines(d);
	if (d->state != DELIVERY_STOPS || d->couriers.count)
		return;
	d->state = DELIVERY_STOPPED;
	timer_stop(d->timer);
	d->timer = NULL;
	deadline_cancel(&d->deadline);
	d->done(d->done_ctx);
}

/* The final dot of @c waits for a receiver that reads nothing, or for its network. */
static bool may_be_stopped(const struct courier *c)
{
	return c->state == COURIER_DOT && c->onward && onward_unconfirmed(c->onward);
}

static void on_delivery_timer(void *ctx)
{
	struct delivery *d = ctx;
	struct courier *c, *next;

	/* The lease held when these dots were said, and is over. A dot that is still here or in the kernel could reach
	 * the receiver behind the new owner's. */
	if (d->state == DELIVERY_RUNS && !queue_may_deliver(d->parts.queue))
		for (c = LIST_FIRST(&d->couriers.all); c; c = next) {
			next = LIST_NEXT(c, next);
			if (may_be_stopped(c))
				courier_cut(c);
		}
	TAILQ_CONCAT(&d->now, &d->later, look_next);
	on_delivery_turn_end(&d->turn);
}

void delivery_begin(struct delivery *d, struct queue *q)
{
	d->parts.queue = q;
	d->state = DELIVERY_RUNS;
}

void delivery_note_due(struct delivery *d, const struct queue_destination *to)
{
	note_destination(d, to);
	delivery_look(d);
}

void delivery_look(struct delivery *d)
{
	worker_at_turn_end(d->parts.worker, &d->turn);
}

/* Those before their final dot, and those whose dot may be stopped if @dots is 1. Returns how many are left. */
static unsigned end_all(struct delivery *d, enum courier_end how, bool dots)
{
	struct courier *c, *next;
	unsigned left = 0;

	for (c = LIST_FIRST(&d->couriers.all); c; c = next) {
		next = LIST_NEXT(c, next);
		if (c->state != COURIER_DOT || (dots && may_be_stopped(c)))
			courier_end(c, how);
		else
			left++;
	}
	return left;
}

void delivery_drop(struct delivery *d)
{
	const unsigned left = end_all(d, COURIER_LET_GO, true);

	if (left)
		log_event(LOG_WARNING, NULL, "deliveries may be repeated by the new owner", "count=%u", left);
}

static void on_delivery_deadline(struct deadline *deadline)
{
	struct delivery *d = container_of(deadline, struct delivery, deadline);
	struct courier *c;

	log_event(LOG_WARNING, NULL, "deliveries are cut at the stop", "count=%u", d->couriers.count);
	while ((c = LIST_FIRST(&d->couriers.all)))
		courier_end(c, COURIER_PUT_BACK);
}

void delivery_stop(struct delivery *d, uint32_t within_ms, void (*done)(void *ctx), void *ctx)
{
	d->state = DELIVERY_STOPS;
	d->done = done;
	d->done_ctx = ctx;
	deadline_set(d->parts.worker, &d->deadline, within_ms);
	end_all(d, COURIER_PUT_BACK, false);
	delivery_look(d);
}

/* A subscriber has a /64 of IPv6 at least. */
uint32_t delivery_source_of(struct content_bytes text)
{
	uint8_t hash[crypto_shorthash_BYTES], bytes[sizeof(struct in6_addr)];
	char client[ADDRESS_TEXT_MAX];
	struct envelope e;
	uint32_t source;

	if (envelope_read(&e, (const char *)text.data, text.len) || smtp_span_copy(e.client, client, sizeof client))
		return 0;
	if (inet_pton(AF_INET6, client, bytes) == 1)
		crypto_shorthash(hash, bytes, sizeof bytes / 2, source_key);
	else
		crypto_shorthash(hash, (const uint8_t *)client, strlen(client), source_key);
	memcpy(&source, hash, sizeof source);
	return source;
}

struct delivery *delivery_create(struct delivery_parts *parts)
{
	struct delivery *d = calloc(1, sizeof *d);

	if (!d)
		return NULL;
	d->parts = *parts;
	crypto_shorthash_keygen(source_key);
	d->turn.fn = on_delivery_turn_end;
	d->deadline.fn = on_delivery_deadline;
	TAILQ_INIT(&d->now);
	TAILQ_INIT(&d->later);
	d->timer = timer_start(parts->worker, on_delivery_timer, d, LOOK_MS, LOOK_MS);
	d->couriers.at_end = &d->turn;
	d->parts.couriers = parts->couriers = &d->couriers;
	d->parts.probes = parts->probes = probes_create(&d->parts);
	if (d->timer && parts->probes)
		return d;
	delivery_destroy(d);
	return NULL;
}

void delivery_destroy(struct delivery *d)
{
	if (!d)
		return;
	timer_stop(d->timer);
	probes_destroy(d->parts.probes);
	turn_end_cancel(&d->turn);
	deadline_cancel(&d->deadline);
	for (struct table_link *l = table_walk(&d->lines, NULL), *next; l; l = next) {
		next = table_walk(&d->lines, l);
		free(delivery_line_of(l));
	}
	table_clear(&d->lines);
	free(d);
}

void delivery_follow(struct delivery *d, const struct conf_smtpproxy *conf)
{
	d->parts.conf = conf;
	d->scope = DELIVERY_ALL_LINES;
	probes_forget(d->parts.probes);
	delivery_look(d);
}
