/* summary.c: walks all sessions and destinations, and keeps the destinations with most to do. */
#include "smtpproxy/control/answers.h"

#include "net/socket/address.h"
#include "smtpproxy/queue/queue.h"

/* The busiest */

/* The objects with the highest loads, the highest first. */
struct busiest {
	uint64_t all;
	unsigned count;
	struct {
		uint64_t load;
		const void *object;
	} at[SUMMARY_ROWS_MAX];
};

static void busiest_keep(struct busiest *b, uint64_t load, const void *object)
{
	unsigned i = b->count < SUMMARY_ROWS_MAX ? b->count++ : SUMMARY_ROWS_MAX;

	b->all++;
	for (; i > 0 && b->at[i - 1].load < load; i--)
		if (i < SUMMARY_ROWS_MAX)
			b->at[i] = b->at[i - 1];
	if (i == SUMMARY_ROWS_MAX)
		return;
	b->at[i].load = load;
	b->at[i].object = object;
}

static json_t *rows_json(const struct busiest *b, json_t *(*row)(const void *object))
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < b->count; i++)
		json_array_append_new(rows, row(b->at[i].object));
	return json_pack("{s:I,s:o}", "total", INT(b->all), "rows", rows);
}

/* Receivers */

static void keep_destination(void *ctx, const struct destination *d)
{
	busiest_keep(ctx, (uint64_t)d->wants.turns.count + d->onwards.in[DESTINATION_LEASED], d);
}

static json_t *destination_json(const void *object)
{
	const struct destination *d = object;
	char text[ADDRESS_TEXT_MAX];

	address_format((const struct sockaddr *)&d->route.to, text);
	return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "address", text, "limit", INT(d->share->limit.limit),
		"ceiling", INT(d->share->limit.ceiling), "sending", INT(d->onwards.in[DESTINATION_LEASED]), "idle",
		INT(d->onwards.in[DESTINATION_IDLE]), "waiting", INT(d->wants.turns.count), "transactions",
		INT(d->transactions), "accepted", INT(d->accepted), "mean_wait_ms",
		INT(d->transactions ? d->turn_ms / d->transactions : 0));
}

static json_t *destinations_json(const struct control_view *v)
{
	struct busiest busiest = { 0 };

	outward_each(v->home->outward, keep_destination, &busiest);
	return rows_json(&busiest, destination_json);
}

/* Senders and hooks */

static json_t *sessions_json(const struct sender_home *home)
{
	const struct session *s;
	json_int_t waiting = 0, sending = 0;

	LIST_FOREACH(s, &home->sessions, next)
	{
		waiting += s->state == SESSION_WAITS;
		sending += s->state >= SESSION_TRIES && s->state <= SESSION_DECIDES;
	}
	return json_pack("{s:I,s:I,s:I}", "now", INT(home->count), "waiting", waiting, "sending", sending);
}

static json_t *hooks_json(const struct hooks *hooks)
{
	const struct hook *k;
	json_t *rows = json_array();

	SLIST_FOREACH(k, &hooks->all, next)
	{
		if (k->conf)
			json_array_append_new(
				rows, json_pack("{s:s,s:s,s:I,s:I,s:I,s:I}", "name", k->name, "state",
					      hook_state_name(k->state), "asked", INT(k->asked), "refused",
					      INT(k->refused), "deferred", INT(k->deferred), "failed", INT(k->failed)));
	}
	return rows;
}

/* The queue */

struct lines {
	struct busiest busiest;
	uint64_t deferred, held;
};

static int keep_line(void *ctx, const struct queue_destination *d)
{
	struct lines *l = ctx;

	l->deferred += d->deferred;
	l->held += d->held;
	busiest_keep(&l->busiest, d->count, d);
	return 0;
}

static json_t *line_json(const void *object)
{
	const struct queue_destination *d = object;

	return json_pack("{s:s,s:s,s:I,s:I,s:I}", "destination", d->name, "flow", destination_flow_name(d->flow),
		"messages", INT(d->count), "deferred", INT(d->deferred), "held", INT(d->held));
}

static json_t *queue_json(struct queue *q)
{
	struct lines lines = { 0 };
	struct queue_stats s;

	if (!q)
		return json_null();
	queue_get_stats(q, &s);
	queue_each_destination(q, keep_line, &lines);
	return json_pack("{s:s,s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:[ss],s:o}", "state", queue_state_name(s.state),
		"in_sync", (int)s.in_sync, "messages", INT(s.messages), "bytes", INT(s.bytes), "deferred",
		INT(lines.deferred), "held", INT(lines.held), "unstored", INT(s.unstored), "stored", INT(s.stored),
		"delivered", INT(s.delivered), "backups", backup_state_name(s.backups[0].state),
		backup_state_name(s.backups[1].state), "destinations", rows_json(&lines.busiest, line_json));
}

char *summary_make(const struct control_view *v)
{
	const struct sender_home *home = v->home;
	json_t *all = json_pack("{s:s,s:s,s:I,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "name", v->conf->name, "version",
		v->version, "uptime_s", INT(worker_wall_ms() - v->started_ms) / 1000, "deliver",
		home->queue ? "queue" : "relay", "counters", answers_counters(home), "sessions", sessions_json(home),
		"destinations", destinations_json(v), "sources", answers_sources(&v->conf->outward, SUMMARY_ROWS_MAX),
		"hooks", hooks_json(&home->hooks), "queue", queue_json(home->queue));
	char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;

	json_decref(all);
	return text;
}
