/* proxy_reload.c: all that can fail is done first, for the new file; then it counts for everything at once. Sessions go
 * on. Connections to receivers were made by the old file: they end with their transaction. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/limits/admission.h"
#include "net/report/error_text.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "smtpproxy/events/event_log.h"
#include "smtpproxy/policy/destination_rules.h"
#include "smtpproxy/process/doors.h"
#include "smtpproxy/process/proxy_inside.h"
#include "smtpproxy/process/queue_side.h"
#include "smtpproxy/tls/onward_tls.h"

#define ERROR_MAX 8192u

/* Of each file, also the first one */

int proxy_check_as_sender(const struct conf_smtpproxy *conf, char *error, size_t cap)
{
	const int r = conf->outward.as_sender == CONF_ON ? capture_try() : 0;
	if (r < 0)
		snprintf(error, cap,
			"outward.as_sender: this process has no CAP_NET_ADMIN (%s); start smtpproxy as root, or with "
			"this capability",
			error_text(r));
	return r < 0 ? CSSL_E_CONFIG : 0;
}

void proxy_warn(const struct conf_smtpproxy *conf)
{
	const char *gap = conf_smtpproxy_tls_gap(conf);
	if (gap)
		log_event(LOG_WARNING, NULL, "TLS may end here", "cause=%s", gap);
}

/* What differs */

static bool text_is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool are_same_addresses(
	const struct sockaddr_storage *a, size_t a_count, const struct sockaddr_storage *b, size_t b_count)
{
	return a_count == b_count && (!a_count || !memcmp(a, b, a_count * sizeof *a));
}

static bool is_same_backup(const struct smtpproxy_backup *a, const struct smtpproxy_backup *b)
{
	return are_same_addresses(a->paths, a->path_count, b->paths, b->path_count) && text_is_same(a->user, b->user) &&
	       text_is_same(a->password_file, b->password_file) && text_is_same(a->ca, b->ca) &&
	       text_is_same(a->name, b->name) && text_is_same(a->certificate, b->certificate) &&
	       text_is_same(a->key, b->key);
}

static bool are_same_backups(
	const struct smtpproxy_backup *a, size_t a_count, const struct smtpproxy_backup *b, size_t b_count)
{
	size_t i = 0;

	while (i < a_count && i < b_count && is_same_backup(&a[i], &b[i]))
		i++;
	return i == a_count && i == b_count;
}

#define TEXT(member)        #member, text_is_same(before->member, after->member)
#define NUMBER(key, member) key, before->member == after->member

/* Warns of changed keys that have an effect only at a start. */
static void warn_of_fixed_keys(const struct conf_smtpproxy *before, const struct conf_smtpproxy *after)
{
	const struct smtpproxy_queue *b = &before->queue, *a = &after->queue;
	const struct {
		const char *key;
		bool is_same;
	} rows[] = {
		{ TEXT(user) },
		{ TEXT(control) },
		{ TEXT(status) },
		{ TEXT(handover) },
		{ TEXT(log.path) },
		{ "dns.servers", are_same_addresses(before->dns.servers, before->dns.server_count, after->dns.servers,
					 after->dns.server_count) },
		{ TEXT(dns.trust_anchor) },
		{ NUMBER("dns.timeout", dns.timeout_ms) },
		{ TEXT(queue.name) },
		{ TEXT(queue.keys) },
		{ NUMBER("queue.role", queue.role) },
		{ NUMBER("queue.total", queue.total) },
		{ NUMBER("queue.destinations", queue.destinations) },
		{ NUMBER("queue.decided", queue.decided) },
		{ NUMBER("queue.decided_time", queue.decided_s) },
		{ NUMBER("queue.replace_after", queue.replace_ms) },
		{ "queue.backups", are_same_backups(b->backups, b->backup_count, a->backups, a->backup_count) },
		{ "queue.spares", are_same_backups(b->spares, b->spare_count, a->spares, a->spare_count) },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (!rows[i].is_same)
			log_event(
				LOG_WARNING, NULL, "changed key takes effect at the next start", "key=%s", rows[i].key);
}

static void reopen_logs(struct proxy *p)
{
	log_reopen();
	const int r = event_log_reopen(p->home.events);
	if (r < 0)
		log_event(LOG_WARNING, NULL, "event log not opened again", "cause=%s", error_text(r));
}

static void follow_events(struct proxy *p)
{
	const int r = event_log_follow(p->home.events, p->conf->events);
	if (r < 0)
		log_event(LOG_WARNING, NULL, "new event log not opened",
			"path=%s cause=%s effect=\"events go to the old file\"", p->conf->events, error_text(r));
}

/* From here on nothing fails. */
static void proxy_follow(struct proxy *p, const struct conf_smtpproxy *conf, SSL_CTX *tls)
{
	const struct smtpproxy_limits *limits = &conf->limits;
	warn_of_fixed_keys(p->conf, conf);
	p->conf = p->home.conf = p->outward_home.conf = p->view.conf = conf;
	SSL_CTX_free(p->outward_home.tls);
	p->outward_home.tls = tls;
	log_configure_level(conf->log.level);
	destination_rules_follow(p->home.rules, conf);
	admission_set_limits(p->home.admission, limits->sessions, limits->sessions_per_source);
	tx_ledger_set_max(p->home.ledger, limits->transactions);
	follow_events(p);
	hooks_follow(&p->home.hooks, conf);
	doors_follow(p->doors, conf);
	if (p->queue_side)
		queue_side_follow(p->queue_side, conf);
	p->home.room.most = conf->queue.memory;
	p->home.held.most = limits->held_total;
	outward_reload(p->home.outward);
	p->counters.reloads++;
	proxy_warn(conf);
	log_event(LOG_INFO, NULL, "configuration read again", "path=%s", conf->file.path);
}

/* 0: it counts, and @f has it. */
static int read_again(struct proxy *p, struct proxy_file *f, char *error, size_t cap)
{
	int r = conf_smtpproxy_load(p->conf->file.path, &f->conf, error, cap);
	r = r ? r : conf_smtpproxy_check_host(f->conf, error, cap);
	if (r < 0)
		return r;
	if (f->conf->deliver != p->conf->deliver) {
		snprintf(error, cap, "deliver: it counts only at a start");
		return CSSL_E_CONFIG;
	}
	r = proxy_check_as_sender(f->conf, error, cap);
	if (r < 0)
		return r;
	SSL_CTX *tls = onward_tls_context("outward.ca", f->conf->outward.ca, error, cap);
	if (tls && hooks_prepare(&p->home.hooks, f->conf) < 0) {
		snprintf(error, cap, "out of memory");
		SSL_CTX_free(tls);
		return CSSL_E_NO_MEMORY;
	}
	r = tls ? doors_open(p->doors, f->conf, NULL, error, cap) : CSSL_E_CONFIG;
	if (r < 0) {
		SSL_CTX_free(tls);
		return r;
	}
	proxy_follow(p, f->conf, tls);
	return 0;
}

void proxy_reload(struct proxy *p)
{
	static char error[ERROR_MAX];
	struct proxy_file *f = calloc(1, sizeof *f);
	reopen_logs(p);
	snprintf(error, sizeof error, "out of memory");
	if (f && p->state == PROXY_RUNS && read_again(p, f, error, sizeof error) == 0) {
		SLIST_INSERT_HEAD(&p->files, f, next);
		return;
	}
	if (p->state == PROXY_RUNS)
		log_event(LOG_ERROR, NULL, "configuration stays as it was", "cause=%s", error);
	if (f)
		conf_smtpproxy_destroy(f->conf);
	free(f);
}
