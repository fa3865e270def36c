/* backup_paths.c: the connections of a backup: it connects, sends heartbeats, gives up what is silent, and hands each
 * reply to the file that asked. */
#include <string.h>

#include "net/memory/container_of.h"
#include "net/report/error_text.h"
#include "net/report/log.h"
#include "smtpproxy/queue/backup/backup_calls.h"
#include "smtpproxy/queue/backup/backup_look.h"
#include "smtpproxy/queue/backup/functions.h"

#define RETRY_MS    250
#define CHECK_MS    10000
#define BEATS_SPARE 64u /* places for calls and looks, which no heartbeat takes */

void backup_init(struct backup *b, unsigned index, const struct backup_conf *conf, struct backup_shared *shared)
{
	memset(b, 0, sizeof *b);
	b->index = b->line.backup = b->refusal.backup = index;
	b->shared = shared;
	b->conf = conf;
	for (unsigned i = 0; i < BACKUP_PATHS; i++)
		b->paths[i].backup = b;
}

static bool is_closed(const struct backup *b)
{
	for (unsigned i = 0; i < b->conf->path_count; i++)
		if (b->paths[i].link.state != REDIS_LINK_IDLE)
			return false;
	return true;
}

/* The connections to the former server close in their own time. Nothing of what it said is kept. */
static void change_server(struct backup *b, int64_t now_ms)
{
	if (!is_closed(b))
		return;
	for (unsigned i = 0; i < BACKUP_PATHS; i++) {
		b->paths[i].stats = (struct queue_path_stats){ 0 };
		b->paths[i].retry_ms = 0;
	}
	if (b->state != BACKUP_AWAY)
		backup_move(b, BACKUP_AWAY);
	b->sight = b->judged = b->replaced = (struct sight){ .state = SIGHT_AWAY };
	b->run_id[0] = '\0';
	b->saves_told = 0;
	refusal_lifted(&b->refusal, REFUSAL_AT_CALL);
	b->looks = b->generation = 0;
	b->asked_ms = b->fill_after_ms = 0;
	b->heard_ms = now_ms;
	b->conf = b->next;
	b->next = NULL;
}

static struct backup_path *path_of(struct redis_link *l)
{
	return container_of(l, struct backup_path, link);
}

static void path_activate(struct backup *b, struct backup_path *p)
{
	b->active = p;
	p->stats.state = PATH_ACTIVE;
	p->stats.switches += backup_is_live(b);
	b->stats.repeated += change_unsend(&b->line);
	b->check_ms = redis_link_clock_ms() + CHECK_MS;
	backup_look(b, LOOK_ALL);
}

static void on_ready(struct redis_link *l)
{
	struct backup_path *p = path_of(l);

	refusal_lifted(&p->backup->refusal, REFUSAL_AT_LOGIN);
	p->stats.connects++;
	p->stats.state = PATH_STANDBY;
	p->beat_ms = 0;
	if (!p->backup->active)
		path_activate(p->backup, p);
}

static void on_lost(struct redis_link *l, const char *why)
{
	struct backup_path *p = path_of(l);
	struct backup *b = p->backup;

	log_event(LOG_DEBUG, NULL, "path lost", "backup=%u path=%u cause=%s", b->index, (unsigned)(p - b->paths), why);
	p->stats.lost += p->stats.state >= PATH_STANDBY;
	p->stats.state = PATH_DOWN;
	p->retry_ms = redis_link_clock_ms() + (backup_refuses(b) ? REFUSAL_RETRY_MS : RETRY_MS);
	if (b->active != p)
		return;
	b->active = NULL;
	change_unsend(&b->line);
	if (!backup_is_live(b) || b->state == BACKUP_COMPARING) /* an interrupted reading has to begin again */
		backup_fall(b);
	for (unsigned i = 0; i < b->conf->path_count && !b->active; i++)
		if (b->paths[i].link.state == REDIS_LINK_READY)
			path_activate(b, &b->paths[i]);
}

static void on_reply(struct redis_link *l, uint32_t tag, int64_t sent_ms, const redisReply *reply)
{
	struct backup_path *p = path_of(l);
	struct backup *b = p->backup;

	b->heard_ms = redis_link_clock_ms();
	if (tag == ASKED_PING || tag == ASKED_RENEW)
		p->stats.answer_ms = b->heard_ms - sent_ms;
	switch ((enum backup_tag)tag) {
	case ASKED_INFO:
	case ASKED_OWNER: b->asked_ms = sent_ms; /* fall through */
	case ASKED_LIBRARY:
	case ASKED_LOAD:
	case ASKED_SAVE:
	case ASKED_CHECK:
	case ASKED_CLAIM: backup_look_answered(b, tag, reply); break;
	case ASKED_SCAN:
	case ASKED_MESSAGES:
	case ASKED_RENEW:
	case ASKED_CALL: backup_answered(b, tag, sent_ms, reply); break;
	case ASKED_PING: break;
	}
}

/* READY: only now it tells that it wants another certificate (TLS 1.3). */
static void on_refused(struct redis_link *l, const char *answer)
{
	refusal_told(&path_of(l)->backup->refusal, l->state == REDIS_LINK_READY ? REFUSAL_AT_LOOK : REFUSAL_AT_LOGIN,
		answer, REFUSAL_TEXT_SECRET, redis_link_clock_ms());
}

static const struct redis_link_ops link_ops = {
	.on_ready = on_ready,
	.on_refused = on_refused,
	.on_reply = on_reply,
	.on_lost = on_lost,
};

/* A heartbeat on the active path of our own backup renews the lease. On any other path it only checks whether the
 * server answers. Where a large message leaves slowly, one more request behind many tells nothing. */
static void path_beat(struct backup_path *p, int64_t now_ms)
{
	struct backup *b = p->backup;

	if (now_ms < p->beat_ms)
		return;
	p->beat_ms = now_ms + b->shared->heartbeat_ms;
	if (p->link.asked_count >= REDIS_ASKED_MAX - BEATS_SPARE)
		return;
	if (p == b->active && !b->looks && now_ms >= b->check_ms) {
		b->check_ms = now_ms + CHECK_MS;
		backup_look(b, LOOK_POLICIES);
	}
	if (p == b->active && !b->looks && (backup_is_live(b) || b->state == BACKUP_CLAIMED)) {
		backup_call_begin(b, FUNCTION_RENEW, 0);
		redis_link_end(&p->link, ASKED_RENEW);
		return;
	}
	redis_link_ask(&p->link, ASKED_PING, (const char *const[]){ "PING", NULL });
}

static void path_tick(struct backup_path *p, int64_t now_ms)
{
	struct backup *b = p->backup;
	int r;

	if (p->link.state == REDIS_LINK_IDLE) {
		if (now_ms < p->retry_ms)
			return;
		p->retry_ms = now_ms + (backup_refuses(b) ? REFUSAL_RETRY_MS : RETRY_MS);
		r = redis_link_open(&p->link, b->shared->worker, &link_ops, &b->conf->login,
			(const struct sockaddr *)&b->conf->paths[p - b->paths]);
		if (!r)
			p->stats.state = PATH_CONNECTING;
		else
			log_event(LOG_DEBUG, NULL, "path does not open", "backup=%u cause=%s", b->index, error_text(r));
		return;
	}
	if (redis_link_waits_ms(&p->link, now_ms) > b->shared->path_timeout_ms) {
		p->stats.timeouts++;
		redis_link_close(&p->link, "no answer in time");
		return;
	}
	if (p->link.state == REDIS_LINK_READY)
		path_beat(p, now_ms);
}

void backup_tick(struct backup *b, int64_t now_ms)
{
	if (b->next) {
		change_server(b, now_ms);
		return;
	}
	for (unsigned i = 0; i < b->conf->path_count; i++)
		path_tick(&b->paths[i], now_ms);
	if (b->active && b->active->link.progress_ms > b->heard_ms)
		b->heard_ms = b->active->link.progress_ms;
	if (backup_is_live(b) && now_ms - b->heard_ms > b->shared->give_up_ms)
		backup_give_up(b, "no path answers");
}

bool backup_stop(struct backup *b)
{
	turn_end_cancel(&b->turn);
	for (unsigned i = 0; i < b->conf->path_count; i++)
		redis_link_close(&b->paths[i].link, "the gateway stops");
	change_clear(&b->line);
	return is_closed(b);
}
