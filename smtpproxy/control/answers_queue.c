/* answers_queue.c: the queue as JSON and as metrics, and an operator's orders. */
#include "smtpproxy/control/answers.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smtpproxy/envelope/envelope.h"
#include "smtpproxy/envelope/fates.h"
#include "smtpproxy/queue/queue.h"

#define MESSAGES     "/v1/queue/messages"
#define DESTINATIONS "/v1/queue/destinations"
#define RATE_MAX     6000000u /* a minute */

/* State */

static json_t *path_json(const struct queue_path_stats *p)
{
	static const char *const words[] = { [PATH_DOWN] = "down",
		[PATH_CONNECTING] = "connecting",
		[PATH_STANDBY] = "standby",
		[PATH_ACTIVE] = "active" };

	return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I}", "state", words[p->state], "connects", INT(p->connects), "lost",
		INT(p->lost), "timeouts", INT(p->timeouts), "switches", INT(p->switches), "answer_ms",
		INT(p->answer_ms));
}

static json_t *backup_json(const struct queue_backup_stats *b)
{
	json_t *paths = json_array();

	for (size_t i = 0; i < b->path_count && i < BACKUP_PATHS; i++)
		json_array_append_new(paths, path_json(&b->paths[i]));
	return json_pack("{s:s,s:s,s:b,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "address", b->address, "state",
		backup_state_name(b->state), "in_sync", b->has_all, "puts", INT(b->puts), "replaces", INT(b->replaces),
		"deletes", INT(b->deletes), "refused", INT(b->refused), "repeated", INT(b->repeated), "fills",
		INT(b->fills), "given_up", INT(b->given_up), "unanswered", INT(b->unanswered), "paths", paths);
}

static json_t *spares_json(const struct queue_stats *s)
{
	json_t *rows = json_array();

	for (unsigned n = 0; n < s->spare_count; n++)
		json_array_append_new(rows, json_pack("{s:s,s:s}", "address", s->spares[n].address, "state",
						    backup_state_name(s->spares[n].state)));
	return rows;
}

/* One for each backup. */
static json_t *changes_json(const struct queue_destination *d)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < BACKUPS; i++)
		json_array_append_new(rows, json_pack("{s:I,s:I}", "answered", INT(d->changes[i].answered),
						    "unanswered", INT(d->changes[i].unanswered)));
	return rows;
}

static int add_destination(void *ctx, const struct queue_destination *d)
{
	json_t *rows = ctx;

	json_array_append_new(
		rows, json_pack("{s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "destination", d->name, "flow",
			      destination_flow_name(d->flow), "rate_per_minute", INT(d->rate), "messages",
			      INT(d->count), "ready", INT(d->ready), "deferred", INT(d->deferred), "taken",
			      INT(d->taken), "held", INT(d->held), "bytes", INT(d->bytes), "changes", changes_json(d)));
	return json_array_size(rows) >= ANSWERS_ROWS_MAX;
}

static json_t *state_json(const struct control_view *v)
{
	json_t *backups = json_array(), *destinations = json_array();
	struct queue_stats s;

	queue_get_stats(v->home->queue, &s);
	for (size_t i = 0; i < BACKUPS; i++)
		json_array_append_new(backups, backup_json(&s.backups[i]));
	queue_each_destination(v->home->queue, add_destination, destinations);
	return json_pack(
		"{s:s,s:s,s:I,s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:o}",
		"name", v->conf->queue.name, "state", queue_state_name(s.state), "epoch", INT(s.epoch), "in_sync",
		(int)s.in_sync, "messages", INT(s.messages), "bytes", INT(s.bytes), "unreadable", INT(s.unreadable),
		"lease_left_ms", INT(s.lease_left_ms), "unstored", INT(s.unstored), "stored", INT(s.stored),
		"recovered", INT(s.recovered), "delivered", INT(s.delivered), "deletes_unconfirmed",
		INT(s.deletes_unconfirmed), "memory", INT(s.memory), "memory_max", INT(s.memory_max),
		"states_unconfirmed", INT(s.states_unconfirmed), "decided", INT(s.decided), "decided_forgotten",
		INT(s.decided_forgotten), "orders", INT(s.orders), "orders_unstored", INT(s.orders_unstored),
		"backups_replaced", INT(s.backups_replaced), "backups", backups, "spares", spares_json(&s),
		"destinations", destinations);
}

/* Messages */

static int64_t seconds_until(int64_t ms, int64_t now_ms)
{
	int64_t left = ms - now_ms;

	return left > 0 ? (left + 999) / 1000 : 0;
}

static json_t *message_json(const struct item *i, int64_t now_ms)
{
	char id[24];

	snprintf(id, sizeof id, "%" PRIx64, i->id);
	return json_pack("{s:s,s:s,s:s,s:I,s:i,s:I,s:I}", "id", id, "destination", i->to ? i->to->name : "-", "state",
		item_state_name(i->state), "bytes", INT(i->sealed_len), "attempts", (int)i->attempts, "age_s",
		INT((now_ms - i->accepted_ms) / 1000), "due_in_s",
		INT(i->state == ITEM_DEFERRED ? seconds_until(i->due_ms, now_ms) : 0));
}

struct list {
	json_t *rows;
	uint64_t after;
	int64_t now_ms;
};

static int add_message(void *ctx, const struct item *i)
{
	struct list *l = ctx;

	if (i->id > l->after)
		json_array_append_new(l->rows, message_json(i, l->now_ms));
	return json_array_size(l->rows) >= ANSWERS_ROWS_MAX;
}

static json_t *messages_json(const struct control_view *v, uint64_t after)
{
	struct list list = { .rows = json_array(), .after = after, .now_ms = queue_now_ms(v->home->queue) };
	struct queue_stats s;

	queue_each_message(v->home->queue, add_message, &list);
	queue_get_stats(v->home->queue, &s);
	return json_pack("{s:o,s:I,s:b}", "messages", list.rows, "total", INT(s.messages), "truncated",
		json_array_size(list.rows) >= ANSWERS_ROWS_MAX);
}

static json_t *span_json(struct smtp_span text)
{
	json_t *out = json_stringn(text.at, text.len);

	return out ? out : json_string("?"); /* not UTF-8 */
}

static void add_recipients(json_t *out, const struct envelope *e, const struct fates *fates)
{
	struct smtp_span rest = e->rest;
	struct envelope_recipient one;
	json_t *rows = json_array();

	for (unsigned i = 0; envelope_next(&rest, &one); i++) {
		const struct fate_one *f = &fates->at[i];
		const char *fate = f->fate == FATE_DELIVERED ? "delivered" : f->fate == FATE_FAILED ? "failed" : "open";

		json_array_append_new(rows,
			json_pack("{s:o,s:s,s:s}", "to", span_json(one.mailbox), "fate", fate, "reply", f->reply));
	}
	json_object_set_new(out, "from", span_json(e->sender));
	json_object_set_new(out, "client", span_json(e->client));
	json_object_set_new(out, "recipients", rows);
}

static json_t *one_json(const struct control_view *v, uint64_t id)
{
	struct queue_taken t;
	const struct item *i = queue_look(v->home->queue, id, &t);
	json_t *out = i ? message_json(i, queue_now_ms(v->home->queue)) : NULL;
	struct fates fates = { 0 };
	struct envelope e;

	if (!t.memory)
		return out;
	if (!envelope_read(&e, (const char *)t.envelope.data, t.envelope.len) &&
		!fates_begin(&fates, e.recipients, (struct smtp_span){ (const char *)t.note.data, t.note.len }))
		add_recipients(out, &e, &fates);
	fates_free(&fates);
	queue_taken_free(&t);
	return out;
}

json_t *answers_queue_find(const struct control_view *v, const char *path, uint64_t after)
{
	const size_t head = strlen(MESSAGES);
	char *end;
	uint64_t id;

	if (!v->home->queue)
		return NULL;
	if (!strcmp(path, "/v1/queue"))
		return state_json(v);
	if (!strcmp(path, MESSAGES))
		return messages_json(v, after);
	if (strncmp(path, MESSAGES "/", head + 1))
		return NULL;
	id = strtoull(path + head + 1, &end, 16);
	return *end ? NULL : one_json(v, id);
}

/* Orders */

struct search {
	struct content_bytes name;
	const struct queue_destination *found;
};

static int find_destination(void *ctx, const struct queue_destination *d)
{
	struct search *s = ctx;

	if (strlen(d->name) == s->name.len && !memcmp(d->name, s->name.data, s->name.len))
		s->found = d;
	return s->found != NULL;
}

static const struct {
	const char *name;
	enum queue_act act;
} acts[] = {
	{ "retry", QUEUE_ACT_RETRY },
	{ "hold", QUEUE_ACT_HOLD },
	{ "release", QUEUE_ACT_RELEASE },
	{ "delete", QUEUE_ACT_DELETE },
};

static const struct queue_destination *destination_of(struct queue *q, struct content_bytes name)
{
	struct search s = { .name = name };

	queue_each_destination(q, find_destination, &s);
	return s.found;
}

/* NAME/stop, NAME/start, NAME/rate/N. A name has no slash, and is in lower case in the queue. */
static enum answers_act act_on_destination(struct queue *q, const char *rest)
{
	const char *slash = strchr(rest, '/');
	const size_t len = slash ? (size_t)(slash - rest) : 0;
	uint8_t lower[DESTINATION_NAME_MAX];
	const struct content_bytes name = { lower, len };
	const struct queue_destination *d;
	enum destination_flow flow;
	uint64_t rate;

	if (!len || len > sizeof lower)
		return ACT_UNKNOWN;
	for (size_t i = 0; i < len; i++)
		lower[i] = (uint8_t)tolower((unsigned char)rest[i]);
	d = destination_of(q, name);
	/* The order has both values. The one that the path does not name stays as it is. */
	flow = d ? d->flow : DESTINATION_FLOWS;
	rate = d ? d->rate : 0;
	if (!strcmp(slash, "/stop"))
		flow = DESTINATION_STOPPED;
	else if (!strcmp(slash, "/start"))
		flow = DESTINATION_FLOWS;
	else if (strncmp(slash, "/rate/", 6) || smtp_span_number(smtp_span_of(slash + 6), RATE_MAX, &rate))
		return ACT_UNKNOWN;
	return queue_order(q, name, flow, (uint32_t)rate) ? ACT_REFUSED : ACT_DONE;
}

enum answers_act answers_queue_act(const struct control_view *v, const char *path)
{
	struct queue *q = v->home->queue;
	const size_t head = strlen(MESSAGES);
	char *end;
	uint64_t id;

	if (q && !strncmp(path, DESTINATIONS "/", strlen(DESTINATIONS "/")))
		return act_on_destination(q, path + strlen(DESTINATIONS "/"));
	if (!q || (strncmp(path, MESSAGES "/", head + 1) && strcmp(path, "/v1/queue/takeover")))
		return ACT_UNKNOWN;
	if (!strcmp(path, "/v1/queue/takeover")) {
		queue_take_over(q);
		return ACT_DONE;
	}
	id = strtoull(path + head + 1, &end, 16);
	/* The id has to end where the word begins, so that no part of one names another message. */
	if (*end != '/' || !queue_look(q, id, NULL))
		return ACT_UNKNOWN;
	for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
		if (!strcmp(end + 1, acts[i].name))
			return queue_act(q, id, acts[i].act) ? ACT_REFUSED : ACT_DONE;
	return ACT_UNKNOWN;
}

/* Metrics */

void answers_gauge(FILE *f, const char *name, const char *help, int64_t n)
{
	fprintf(f, "# HELP smtpproxy_%s %s\n# TYPE smtpproxy_%s gauge\nsmtpproxy_%s %" PRId64 "\n", name, help, name,
		name, n);
}

static void backup_metrics(FILE *f, const struct queue_stats *s)
{
	fputs("# HELP smtpproxy_queue_backup_in_sync that Redis server has all messages of the queue\n"
	      "# TYPE smtpproxy_queue_backup_in_sync gauge\n",
		f);
	for (unsigned i = 0; i < BACKUPS; i++)
		fprintf(f, "smtpproxy_queue_backup_in_sync{backup=\"%u\"} %d\n", i, s->backups[i].has_all);
}

static void spare_metrics(FILE *f, const struct queue_stats *s)
{
	unsigned answering = 0;

	for (unsigned n = 0; n < s->spare_count; n++)
		answering += s->spares[n].state == BACKUP_SEEN;
	answers_gauge(f, "queue_backups_replaced", "lost Redis servers whose place another one took, since the start",
		(int64_t)s->backups_replaced);
	answers_gauge(
		f, "queue_spares", "Redis servers of the file that have no copy of the queue and answer", answering);
}

void answers_queue_metrics(const struct control_view *v, FILE *f)
{
	struct queue_stats s;

	if (!v->home->queue)
		return;
	queue_get_stats(v->home->queue, &s);
	answers_gauge(f, "queue_messages", "messages in the queue", (int64_t)s.messages);
	answers_gauge(f, "queue_bytes", "their bytes in memory", (int64_t)s.bytes);
	answers_gauge(f, "queue_memory_bytes", "memory of all that the queue holds", (int64_t)s.memory);
	answers_gauge(f, "queue_memory_max_bytes", "the most of it (queue.total)", (int64_t)s.memory_max);
	answers_gauge(f, "queue_in_sync", "Redis servers that have all of them", s.in_sync);
	backup_metrics(f, &s);
	if (s.spare_count)
		spare_metrics(f, &s);
	answers_gauge(f, "queue_standby", "another gateway owns the queue", s.state == QUEUE_WATCHING);
	answers_gauge(f, "queue_unstored", "messages whose senders wait for the Redis servers", (int64_t)s.unstored);
	answers_gauge(f, "queue_incoming_bytes", "bytes of messages that come in or wait for the Redis servers",
		(int64_t)v->home->room.used);
	answers_gauge(f, "queue_unreadable", "items that could not be opened when they were read back",
		(int64_t)s.unreadable);
	answers_gauge(f, "queue_deletes_unconfirmed",
		"delivered messages that would be delivered again after a crash now", (int64_t)s.deletes_unconfirmed);
	answers_gauge(f, "queue_states_unconfirmed",
		"messages whose last attempt would be forgotten after a crash now, with the recipients that it "
		"delivered to",
		(int64_t)s.states_unconfirmed);
	answers_gauge(f, "queue_orders_unstored",
		"orders for destinations that not every Redis server has, so that a restart could forget them",
		(int64_t)s.orders_unstored);
	answers_gauge(f, "queue_decided", "transactions whose end is remembered for XCSSLTX", (int64_t)s.decided);
	answers_gauge(f, "queue_decided_forgotten",
		"transactions that were forgotten before queue.decided_time, because there are queue.decided later "
		"ones",
		(int64_t)s.decided_forgotten);
	answers_gauge(f, "queue_lease_left_ms", "how long messages may be delivered without another answer",
		s.lease_left_ms > 0 ? s.lease_left_ms : 0);
}
