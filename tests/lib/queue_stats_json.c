/* queue_stats_json.c: what a queue counts, as JSON. */
#include "tests/lib/queue_stats_json.h"

#include <stdio.h>
#include <sys/resource.h>

#include "smtpproxy/queue/backup/backup.h"

static json_t *path_stats(const struct queue_path_stats *p)
{
	return json_pack("{s:i,s:I,s:I,s:I,s:I}", "state", (int)p->state, "connects", (json_int_t)p->connects, "lost",
		(json_int_t)p->lost, "timeouts", (json_int_t)p->timeouts, "switches", (json_int_t)p->switches);
}

static json_t *backup_stats(const struct queue_backup_stats *b)
{
	return json_pack("{s:s,s:s,s:[o,o],s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "address", b->address, "state",
		backup_state_name(b->state), "paths", path_stats(&b->paths[0]), path_stats(&b->paths[1]), "puts",
		(json_int_t)b->puts, "replaces", (json_int_t)b->replaces, "deletes", (json_int_t)b->deletes, "refused",
		(json_int_t)b->refused, "calls", (json_int_t)b->calls, "repeated", (json_int_t)b->repeated, "fills",
		(json_int_t)b->fills, "given_up", (json_int_t)b->given_up, "unanswered", (json_int_t)b->unanswered);
}

static json_t *spares(const struct queue_stats *s)
{
	json_t *rows = json_array();

	for (unsigned n = 0; n < s->spare_count; n++)
		json_array_append_new(rows, json_pack("{s:s,s:s}", "address", s->spares[n].address, "state",
						    backup_state_name(s->spares[n].state)));
	return rows;
}

json_t *queue_stats_json(const struct queue_stats *s)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	json_t *out = json_pack("{s:s,s:[o,o],s:I,s:I,s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "state",
		queue_state_name(s->state), "backups", backup_stats(&s->backups[0]), backup_stats(&s->backups[1]),
		"epoch", (json_int_t)s->epoch, "version", (json_int_t)s->version, "in_sync", (int)s->in_sync,
		"messages", (json_int_t)s->messages, "unstored", (json_int_t)s->unstored, "stored",
		(json_int_t)s->stored, "delivered", (json_int_t)s->delivered, "recovered", (json_int_t)s->recovered,
		"unreadable", (json_int_t)s->unreadable, "decided", (json_int_t)s->decided);
	json_object_set_new(out, "spares", spares(s));
	json_object_set_new(out, "backups_replaced", json_integer((json_int_t)s->backups_replaced));
	json_object_set_new(out, "memory", json_integer((json_int_t)s->memory));
	json_object_set_new(out, "decided_forgotten", json_integer((json_int_t)s->decided_forgotten));
	json_object_set_new(out, "recovery_ms", json_integer((json_int_t)s->recovery_ms));
	json_object_set_new(out, "unconfirmed", json_integer((json_int_t)s->deletes_unconfirmed));
	json_object_set_new(out, "states_unconfirmed", json_integer((json_int_t)s->states_unconfirmed));
	json_object_set_new(out, "lease_left_ms", json_integer(s->lease_left_ms));
	json_object_set_new(out, "opaque", json_integer((json_int_t)s->opaque));
	json_object_set_new(out, "orders", json_integer((json_int_t)s->orders));
	json_object_set_new(out, "orders_unstored", json_integer((json_int_t)s->orders_unstored));
	json_object_set_new(out, "orders_refused", json_integer((json_int_t)s->orders_refused));
	json_object_set_new(out, "bytes", json_integer((json_int_t)s->bytes));
	json_object_set_new(out, "rss_kb", json_integer(usage.ru_maxrss));
	return out;
}
