/* event_log.c: a ring of records, and a file that another thread writes. */
#include "smtpproxy/events/event_log.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/report/log.h"
#include "net/report/log_file.h"
#include "smtpproxy/events/event_writer.h"

#define STOP_MS 5000u /* for the lines that wait; systemd's limit for a stop leaves more */

struct event_log {
	const char *path;
	uint64_t *dropped;
	struct event_writer *writer;
	uint64_t lost; /* of @writer, those that are in @dropped */
	int fd;        /* that of event_log_open(), which is the writer's; -1: none */
	enum log_origin origin;
	uint64_t newest;
	char instance[EVENT_LOG_INSTANCE];
	json_t *kept[EVENT_LOG_KEPT]; /* number n at n % EVENT_LOG_KEPT */
};

struct event_log *event_log_create(const char *path, uint64_t *dropped)
{
	struct event_log *l = calloc(1, sizeof *l);
	if (!l)
		return NULL;
	l->path = path;
	l->dropped = dropped;
	l->fd = -1;
	l->writer = event_writer_create();
	if (!l->writer) {
		free(l);
		return NULL;
	}
	snprintf(l->instance, sizeof l->instance, "%08" PRIx32, randombytes_random());
	return l;
}

void event_log_destroy(struct event_log *l)
{
	if (!l)
		return;
	const uint64_t left = event_writer_destroy(l->writer, STOP_MS);
	if (left > 0)
		log_event(LOG_WARNING, NULL, "event log not written in time", "records=%" PRIu64, left);
	for (unsigned i = 0; i < EVENT_LOG_KEPT; i++)
		json_decref(l->kept[i]);
	free(l);
}

int event_log_open(struct event_log *l)
{
	if (!l->path)
		return 0;
	l->fd = event_writer_open_file(l->path, &l->origin);
	if (l->fd < 0)
		return l->fd;
	event_writer_begin(l->writer, l->fd);
	return 0;
}

int event_log_reopen(struct event_log *l)
{
	return l->path ? event_writer_open(l->writer, l->path) : 0;
}

int event_log_follow(struct event_log *l, const char *path)
{
	const bool is_same = path && l->path ? strcmp(path, l->path) == 0 : path == l->path;
	const int r = is_same ? 0 : event_writer_open(l->writer, path);
	if (r == 0)
		l->path = path;
	return r;
}

int event_log_give(const struct event_log *l, uid_t user, gid_t group)
{
	return l->origin == LOG_FILE_MADE && fchown(l->fd, user, group) < 0 ? -errno : 0;
}

static void write_line(struct event_log *l, const json_t *record)
{
	char *text = json_dumps(record, JSON_COMPACT | JSON_PRESERVE_ORDER);
	const size_t len = text ? strlen(text) : 0;
	if (text)
		text[len] = '\n'; /* in place of the terminator */
	if (!text || event_writer_add(l->writer, text, len + 1) < 0)
		++*l->dropped;
}

void event_log_count(struct event_log *l)
{
	const uint64_t lost = event_writer_lost(l->writer);
	*l->dropped += lost - l->lost;
	l->lost = lost;
}

void event_log_add(struct event_log *l, json_t *record)
{
	json_t **place = &l->kept[++l->newest % EVENT_LOG_KEPT];
	if (!record) {
		++*l->dropped;
		return;
	}
	json_object_set_new(record, "n", json_integer((json_int_t)l->newest));
	json_object_set_new(record, "instance", json_string(l->instance));
	if (l->path)
		write_line(l, record);
	json_decref(*place);
	*place = record;
}

static uint64_t oldest_of(const struct event_log *l)
{
	return l->newest > EVENT_LOG_KEPT ? l->newest - EVENT_LOG_KEPT + 1 : 1;
}

static json_t *records_since(const struct event_log *l, uint64_t after, unsigned most)
{
	const uint64_t oldest = oldest_of(l);
	json_t *out = json_array();
	for (uint64_t n = after + 1 > oldest ? after + 1 : oldest; n <= l->newest && json_array_size(out) < most; n++) {
		json_t *record = l->kept[n % EVENT_LOG_KEPT];
		const json_int_t number = json_integer_value(json_object_get(record, "n"));
		if (number == (json_int_t)n)
			json_array_append(out, record);
	}
	return out;
}

json_t *event_log_answer(const struct event_log *l, uint64_t after, unsigned most)
{
	json_t *out = json_object();
	json_object_set_new(out, "instance", json_string(l->instance));
	json_object_set_new(out, "events", records_since(l, after, most));
	json_object_set_new(out, "oldest", json_integer((json_int_t)oldest_of(l)));
	json_object_set_new(out, "newest", json_integer((json_int_t)l->newest));
	return out;
}
