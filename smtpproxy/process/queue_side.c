/* queue_side.c: makes the queue out of the configuration, and joins it with its delivery. */
#include "smtpproxy/process/queue_side.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/key_file.h"
#include "proto/error.h"
#include "smtpproxy/counters.h"
#include "smtpproxy/queue/queue.h"
#include "smtpproxy/tls/onward_tls.h"

#define PASSWORD_MAX   512u
#define FLUSH_LEAST_MS 2000u  /* for the Redis servers' answers when the deliveries have used all of the time */
#define DEFER_LEAST_MS 60000u /* so long the queue itself puts messages off */

struct queue_side {
	const struct queue_side_ops *ops;
	void *ctx;
	struct key_ring *keys;
	char *passwords[SERVERS_MAX];
	SSL_CTX *tls[SERVERS_MAX];
	struct queue *queue;
	struct delivery *delivery;
	struct worker *worker;
	uint64_t stop_at_ms; /* of the loop's clock */
};

/* The first line; NULL with @error. The text goes through locked memory only. */
static char *read_password(const char *path, char *error, size_t cap)
{
	const int fd = key_file_open(path, KEY_FILE_WORD, error, cap);
	char *line = fd < 0 ? NULL : sodium_malloc(PASSWORD_MAX);
	const ssize_t len = line ? read(fd, line, PASSWORD_MAX - 1) : -1;

	if (fd < 0)
		return NULL;
	close(fd);
	if (len > 0)
		line[len] = '\0';
	if (len > 0 && strcspn(line, "\r\n") > 0) {
		line[strcspn(line, "\r\n")] = '\0';
		return line;
	}
	snprintf(error, cap, "%s: no password can be read", path);
	sodium_free(line);
	return NULL;
}

static SSL_CTX *make_tls(const struct smtpproxy_backup *from, char *error, size_t cap)
{
	SSL_CTX *tls = onward_tls_context("ca", from->ca, error, cap);

	if (tls && from->certificate && onward_tls_identify(tls, from->certificate, from->key, error, cap)) {
		SSL_CTX_free(tls);
		tls = NULL;
	}
	return tls;
}

/* What the files of a start say: passwords and TLS. */
static int read_secrets(struct queue_side *s, const struct smtpproxy_backup *from, size_t count, unsigned first,
	char *error, size_t cap)
{
	for (size_t i = 0; i < count && first + i < SERVERS_MAX; i++) {
		if (from[i].ca && !(s->tls[first + i] = make_tls(&from[i], error, cap)))
			return -1;
		if (from[i].password_file &&
			!(s->passwords[first + i] = read_password(from[i].password_file, error, cap)))
			return -1;
	}
	return 0;
}

static void set_backup(struct queue_side *s, const struct smtpproxy_backup *from, unsigned at, struct backup_conf *to)
{
	for (size_t i = 0; i < from->path_count && i < BACKUP_PATHS; i++)
		to->paths[to->path_count++] = from->paths[i];
	to->login = (struct redis_login){
		.user = from->user, .password = s->passwords[at], .tls = s->tls[at], .name = from->name
	};
}

static void on_queue_side_ready(void *user)
{
	struct queue_side *s = user;

	s->ops->on_change(s->ctx);
	delivery_look(s->delivery);
}

static void on_unready(void *user)
{
	struct queue_side *s = user;

	s->ops->on_change(s->ctx);
}

static void on_queue_side_due(void *user, const struct queue_destination *d)
{
	struct queue_side *s = user;

	delivery_note_due(s->delivery, d);
}

static void on_may_take(void *user)
{
	struct queue_side *s = user;

	delivery_look(s->delivery);
}

static void on_deposed(void *user)
{
	struct queue_side *s = user;

	delivery_drop(s->delivery);
	s->ops->on_deposed(s->ctx);
}

static void on_stopped(void *user)
{
	struct queue_side *s = user;

	queue_destroy(s->queue);
	s->queue = NULL;
	s->ops->on_stopped(s->ctx);
}

static const struct queue_ops queue_ops = {
	.on_ready = on_queue_side_ready,
	.on_unready = on_unready,
	.on_due = on_queue_side_due,
	.on_may_take = on_may_take,
	.on_deposed = on_deposed,
	.on_stopped = on_stopped,
};

static const enum queue_role roles[] = {
	[SMTPPROXY_OWNER] = QUEUE_OWNER,
	[SMTPPROXY_STANDBY] = QUEUE_STANDBY,
	[SMTPPROXY_ALONE] = QUEUE_ALONE,
};

static void set_servers(struct queue_side *s, const struct smtpproxy_queue *from, struct queue_conf *to)
{
	for (unsigned i = 0; i < BACKUPS; i++)
		set_backup(s, &from->backups[i], i, &to->backups[i]);
	for (unsigned i = 0; i < from->spare_count && i < SPARES_MAX; i++)
		set_backup(s, &from->spares[i], BACKUPS + i, &to->spares[to->spare_count++]);
	to->replace_ms = from->replace_ms;
}

static struct queue *make_queue(struct queue_side *s, const struct delivery_parts *parts)
{
	const struct smtpproxy_queue *c = &parts->conf->queue;
	struct queue_conf conf = { .name = c->name,
		.keys = s->keys,
		.unstored_bytes_max = c->memory,
		.memory_max = c->total,
		.destinations_max = c->destinations,
		.decided_max = c->decided,
		.decided_s = c->decided_s };
	const uint32_t waits_ms = c->retry_last_ms > c->retry_first_ms ? c->retry_last_ms : c->retry_first_ms;

	conf.role = roles[c->role];
	conf.source_of = delivery_source_of;
	conf.defer_most_ms = waits_ms > DEFER_LEAST_MS ? waits_ms : DEFER_LEAST_MS;
	set_servers(s, c, &conf);
	return queue_create(parts->worker, &conf, &queue_ops, s);
}

struct queue_side *queue_side_create(const struct smtpproxy_queue *conf, char *error, size_t cap)
{
	struct queue_side *s = calloc(1, sizeof *s);

	snprintf(error, cap, "out of memory");
	if (!s)
		return NULL;
	s->keys = conf_read_key(conf->keys, error, cap);
	if (s->keys && read_secrets(s, conf->backups, conf->backup_count, 0, error, cap) == 0 &&
		read_secrets(s, conf->spares, conf->spare_count, BACKUPS, error, cap) == 0)
		return s;
	queue_side_destroy(s);
	return NULL;
}

int queue_side_open(struct queue_side *s, struct delivery_parts *parts, const struct queue_side_ops *ops, void *ctx,
	char *error, size_t cap)
{
	s->ops = ops;
	s->ctx = ctx;
	s->worker = parts->worker;
	s->delivery = delivery_create(parts);
	s->queue = s->delivery ? make_queue(s, parts) : NULL;
	parts->queue = s->queue;
	if (!s->queue) {
		snprintf(error, cap, "queue: out of memory");
		return CSSL_E_NO_MEMORY;
	}
	delivery_begin(s->delivery, s->queue);
	return 0;
}

static void on_delivered(void *ctx)
{
	struct queue_side *s = ctx;
	const uint64_t now_ms = worker_now_ms(s->worker), left_ms = s->stop_at_ms - now_ms;

	queue_stop(s->queue, s->stop_at_ms < now_ms + FLUSH_LEAST_MS ? FLUSH_LEAST_MS : (uint32_t)left_ms);
}

void queue_side_stop(struct queue_side *s, uint32_t within_ms)
{
	s->stop_at_ms = worker_now_ms(s->worker) + within_ms;
	delivery_stop(s->delivery, within_ms, on_delivered, s);
}

void queue_side_follow(struct queue_side *s, const struct conf_smtpproxy *conf)
{
	delivery_follow(s->delivery, conf);
}

void queue_side_destroy(struct queue_side *s)
{
	if (!s)
		return;
	delivery_destroy(s->delivery);
	queue_destroy(s->queue);
	sodium_free(s->keys);
	for (unsigned i = 0; i < SERVERS_MAX; i++) {
		sodium_free(s->passwords[i]);
		SSL_CTX_free(s->tls[i]);
	}
	free(s);
}
