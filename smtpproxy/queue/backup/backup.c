/* backup.c: the states of a backup, its paths and their time-outs. */
#include "smtpproxy/queue/backup/backup_inside.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "net/container_of.h"
#include "net/error_text.h"
#include "net/log.h"

#define RETRY_MS         250
#define REFUSED_RETRY_MS 2000 /* the server may log each attempt */
#define CHECK_MS         10000
#define BEATS_SPARE      64u /* places for calls and looks, which no heartbeat takes */

#define TO(state) (1u << BACKUP_##state)

static const struct {
	const char *name;
	unsigned may_move_to;
} states[] = {
	[BACKUP_AWAY] = { "away", TO(AWAY) | TO(SEEN) | TO(REFUSED) },
	[BACKUP_SEEN] = { "seen", TO(AWAY) | TO(SEEN) | TO(CLAIMING) | TO(REFUSED) },
	[BACKUP_CLAIMING] = { "claiming", TO(AWAY) | TO(CLAIMED) | TO(REFUSED) },
	[BACKUP_CLAIMED] = { "claimed", TO(AWAY) | TO(COMPARING) | TO(MARKING) | TO(REFUSED) },
	[BACKUP_COMPARING] = { "comparing", TO(AWAY) | TO(FILLING) | TO(REFUSED) },
	[BACKUP_FILLING] = { "filling", TO(AWAY) | TO(MARKING) | TO(REFUSED) },
	[BACKUP_MARKING] = { "marking", TO(AWAY) | TO(IN_SYNC) | TO(REFUSED) },
	[BACKUP_IN_SYNC] = { "in sync", TO(AWAY) | TO(REFUSED) },
	[BACKUP_REFUSED] = { "refused", TO(AWAY) | TO(SEEN) | TO(REFUSED) },
};

const char *backup_state_name(enum backup_state s)
{
	return states[s].name;
}

void backup_move(struct backup *b, enum backup_state to)
{
	assert(states[b->state].may_move_to & 1u << to);
	if (b->state != to)
		log_event(LOG_DEBUG, NULL, "backup", "backup=%u was=%s is=%s", b->index, states[b->state].name,
			states[to].name);
	b->state = to;
}

void backup_init(struct backup *b, unsigned index, const struct backup_conf *conf, struct backup_shared *shared)
{
	memset(b, 0, sizeof *b);
	b->index = b->line.backup = index;
	b->shared = shared;
	b->turn.fn = backup_send_at_turn_end;
	b->conf = conf;
	for (unsigned i = 0; i < BACKUP_PATHS; i++)
		b->paths[i].backup = b;
}

/* The state of a backup after it is lost. Its owner is told if the state was more than SEEN. */
static void fall(struct backup *b)
{
	enum backup_state was = b->state;

	if (was == BACKUP_REFUSED || was == BACKUP_AWAY)
		return;
	backup_move(b, BACKUP_AWAY);
	b->sight.state = SIGHT_AWAY;
	b->fill_next = NULL;
	b->not_used = NULL;
	b->renewed_ms = 0;
	if (was > BACKUP_SEEN)
		queue_on_given_up(b, was);
	change_clear(&b->line);
}

const char backup_begins_again[] = "the recovery begins again";

void backup_give_up(struct backup *b, const char *why)
{
	if (b->state > BACKUP_SEEN && b->state != BACKUP_REFUSED) {
		/* the gateway begins again and again; the cause is told */
		const bool again = why == backup_begins_again || (backup_refuses(b) && !backup_counts(b));
		log_event(again ? LOG_DEBUG : LOG_WARNING, NULL, "backup given up", "backup=%u state=%s cause=%s",
			b->index, states[b->state].name, why);
		b->stats.given_up++;
	}
	for (unsigned i = 0; i < b->conf->path_count; i++)
		redis_link_close(&b->paths[i].link, why);
	fall(b);
}

void backup_use(struct backup *b, const struct backup_conf *conf, const char *why)
{
	b->next = conf;
	backup_give_up(b, why);
}

bool backup_is_closed(const struct backup *b)
{
	for (unsigned i = 0; i < b->conf->path_count; i++)
		if (b->paths[i].link.state != REDIS_LINK_IDLE)
			return false;
	return true;
}

/* The links of the former server close in their own time. Nothing of what it said is kept. */
static void change_server(struct backup *b, int64_t now_ms)
{
	if (!backup_is_closed(b))
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
	backup_let_in(b, REFUSAL_AT_CALL);
	b->looks = b->generation = 0;
	b->asked_ms = b->fill_after_ms = 0;
	b->heard_ms = now_ms;
	b->conf = b->next;
	b->next = NULL;
}

/* --- a server that answers, and does not let this gateway in, or not do what it asks ---
 *
 * Another gateway may own the queue there, so it is never told as one that is lost. */

/* Instead of an answer to AUTH that no row has: "unknown command" repeats the password. */
#define NOT_SHOWN "not shown, it may have the password"

/* By the first words of its answer. The last row has all others. */
static const struct {
	const char *answer, *cause, *remedy;
} refusals[] = {
	{ "NOAUTH", "it wants a user or a password", "set user and password_file of this server, and restart" },
	{ "WRONGPASS", "it knows no such user, or another password",
		"compare user and password_file with its ACL LIST; restart if they change" },
	{ "NOPERM", "its user may not do that", "give its user the rights that doc/mail.md lists" },
	{ "ERR AUTH <password> called without", "it has no password",
		"give it one, or take password_file out and restart" },
	{ NOT_SHOWN, "it does not take AUTH", "look at its answer to AUTH with redis-cli" },
	{ "ERR max number of clients", "it has as many clients as it takes", "raise its maxclients" },
	{ "LOADING", "it reads its file", "wait" },
	{ "TLS ", "no TLS with it comes about", "compare ca, name, certificate and key with its own; restart" },
	{ "maxmemory_policy:", "it may evict messages", "set its maxmemory-policy to noeviction" },
	{ "role:slave", "it is a replica", "name a primary, each on a host of its own" },
	{ "READONLY", "it is a replica", "name a primary, each on a host of its own" },
	{ "cluster_enabled:", "it is a part of a Redis Cluster", "name a server that is alone" },
	{ "MISCONF", "it cannot write its snapshot, and takes no changes", "set its save to an empty text" },
	{ OTHER_KEY, "its marker is of a gateway with another key, whose mail this one cannot read",
		"give both the same key file (queue.keys)" },
	{ "", "it cannot be used", "see the answer" },
};

static size_t row_of(const char *answer)
{
	size_t n = 0;

	while (strncmp(answer, refusals[n].answer, strlen(refusals[n].answer)))
		n++;
	return n;
}

int backup_refuses(const struct backup *b)
{
	return b->refused_ms && redis_link_clock_ms() - b->refused_ms < 3 * REFUSED_RETRY_MS;
}

bool backup_answers(const struct backup *b)
{
	return b->active || backup_refuses(b);
}

void backup_refused(struct backup *b, enum backup_refusal at, const char *answer)
{
	const bool again = b->refusal == at && !strncmp(b->refused, answer, sizeof b->refused - 1);
	const size_t n = row_of(answer);

	b->refused_ms = redis_link_clock_ms();
	b->refusal = at;
	snprintf(b->refused, sizeof b->refused, "%s", answer);
	log_event(again ? LOG_DEBUG : LOG_WARNING, NULL, "backup refuses",
		"backup=%u answer=%s cause=\"%s\" remedy=\"%s\"", b->index, answer, refusals[n].cause,
		refusals[n].remedy);
}

void backup_let_in(struct backup *b, enum backup_refusal at)
{
	if (b->refusal > at)
		return;
	b->refusal = REFUSAL_NONE;
	b->refused_ms = 0;
}

static struct backup_path *path_of(struct redis_link *l)
{
	return container_of(l, struct backup_path, link);
}

static void activate(struct backup *b, struct backup_path *p)
{
	b->active = p;
	p->stats.state = PATH_ACTIVE;
	p->stats.switches += backup_is_live(b);
	b->stats.repeated += change_unsend(&b->line);
	b->check_ms = redis_link_clock_ms() + CHECK_MS;
	backup_look(b);
}

static void on_ready(struct redis_link *l)
{
	struct backup_path *p = path_of(l);

	backup_let_in(p->backup, REFUSAL_AT_LOGIN);
	p->stats.connects++;
	p->stats.state = PATH_STANDBY;
	p->beat_ms = 0;
	if (!p->backup->active)
		activate(p->backup, p);
}

static void on_lost(struct redis_link *l, const char *why)
{
	struct backup_path *p = path_of(l);
	struct backup *b = p->backup;

	log_event(LOG_DEBUG, NULL, "path lost", "backup=%u path=%u cause=%s", b->index, (unsigned)(p - b->paths), why);
	p->stats.lost += p->stats.state >= PATH_STANDBY;
	p->stats.state = PATH_DOWN;
	p->retry_ms = redis_link_clock_ms() + (backup_refuses(b) ? REFUSED_RETRY_MS : RETRY_MS);
	if (b->active != p)
		return;
	b->active = NULL;
	change_unsend(&b->line);
	if (!backup_is_live(b) || b->state == BACKUP_COMPARING) /* an interrupted reading has to begin again */
		fall(b);
	for (unsigned i = 0; i < b->conf->path_count && !b->active; i++)
		if (b->paths[i].link.state == REDIS_LINK_READY)
			activate(b, &b->paths[i]);
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
	case ASKED_CHECK: backup_look_answered(b, tag, reply); break;
	case ASKED_CLAIM: backup_claim_answered(b, reply); break;
	case ASKED_SCAN:
	case ASKED_MESSAGES: backup_read_answered(b, tag, reply); break;
	case ASKED_RENEW:
	case ASKED_CALL:
		if (reply->type != REDIS_REPLY_ERROR)
			queue_on_renewed(b, sent_ms);
		if (tag == ASKED_CALL)
			backup_call_answered(b, reply);
		else if (reply->type == REDIS_REPLY_ERROR)
			backup_call_failed(b, reply->str);
		break;
	case ASKED_PING: break;
	}
}

/* READY: only now it tells that it wants another certificate (TLS 1.3). */
static void on_refused(struct redis_link *l, const char *answer)
{
	backup_refused(path_of(l)->backup, l->state == REDIS_LINK_READY ? REFUSAL_AT_LOOK : REFUSAL_AT_LOGIN,
		refusals[row_of(answer)].answer[0] ? answer : NOT_SHOWN);
}

static const struct redis_link_ops link_ops = {
	.on_ready = on_ready,
	.on_refused = on_refused,
	.on_reply = on_reply,
	.on_lost = on_lost,
};

/* A heartbeat on the active path of our own backup renews the lease. On any other path it only checks whether the
 * server answers. Where a large message leaves slowly, one more request behind many tells nothing. */
static void beat(struct backup_path *p, int64_t now_ms)
{
	struct backup *b = p->backup;

	if (now_ms < p->beat_ms)
		return;
	p->beat_ms = now_ms + b->shared->heartbeat_ms;
	if (p->link.asked_count >= REDIS_ASKED_MAX - BEATS_SPARE)
		return;
	if (p == b->active && !b->looks && now_ms >= b->check_ms) {
		b->check_ms = now_ms + CHECK_MS;
		backup_ask_policies(b, ASKED_CHECK);
	}
	if (p == b->active && !b->looks && (backup_is_live(b) || b->state == BACKUP_CLAIMED)) {
		backup_call_begin(b, FUNCTION_RENEW, 0);
		redis_link_end(&p->link, ASKED_RENEW);
		return;
	}
	redis_link_ask(&p->link, ASKED_PING, (const char *const[]){ "PING", NULL });
}

static void tick_path(struct backup_path *p, int64_t now_ms)
{
	struct backup *b = p->backup;
	int r;

	if (p->link.state == REDIS_LINK_IDLE) {
		if (now_ms < p->retry_ms)
			return;
		p->retry_ms = now_ms + (backup_refuses(b) ? REFUSED_RETRY_MS : RETRY_MS);
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
		beat(p, now_ms);
}

void backup_tick(struct backup *b, int64_t now_ms)
{
	if (b->next) {
		change_server(b, now_ms);
		return;
	}
	for (unsigned i = 0; i < b->conf->path_count; i++)
		tick_path(&b->paths[i], now_ms);
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
	return backup_is_closed(b);
}
