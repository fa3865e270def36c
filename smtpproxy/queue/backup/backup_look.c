/* backup_look.c: asks a server for its identity and its owner (INFO, the owner's record), and claims it. */
#include "smtpproxy/queue/backup/backup_look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/report/log.h"
#include "smtpproxy/queue/backup/functions.h"
#include "smtpproxy/queue/backup/record.h"

#define LOOK_RESTARTED 1 /* the server process is another one than before */
#define LOOK_REFUSED   2 /* it cannot hold a queue, as it is */

static void look_ask_owner(struct backup *b)
{
	redis_link_ask(&b->active->link, ASKED_OWNER, (const char *const[]){ "HGETALL", b->shared->owner_key, NULL });
	b->looks++;
}

/* The sections of INFO that look_judge() and look_take_info() read, and CONFIG, which the user may have no right to. */
static void look_ask_policies(struct backup *b, enum backup_tag tag)
{
	static const char *const info[] = { "INFO", "server", "memory", "persistence", "replication", "cluster", NULL };
	static const char *const save[] = { "CONFIG", "GET", "save", NULL };

	redis_link_ask(&b->active->link, tag, info);
	redis_link_ask(&b->active->link, ASKED_SAVE, save);
}

static void look_at_all(struct backup *b)
{
	static const char *const library[] = { "FUNCTION", "LIST", "LIBRARYNAME", FUNCTIONS_LIBRARY, NULL };

	look_ask_policies(b, ASKED_INFO);
	redis_link_ask(&b->active->link, ASKED_LIBRARY, library);
	b->looks = 2;
	look_ask_owner(b);
}

void backup_look(struct backup *b, enum look what)
{
	if (what == LOOK_ALL)
		look_at_all(b);
	else if (what == LOOK_POLICIES)
		look_ask_policies(b, ASKED_CHECK);
	else if (b->active && !b->looks && b->active->link.state == REDIS_LINK_READY)
		look_ask_owner(b);
}

static void claim_send(struct backup *b)
{
	struct redis_link *l = &b->active->link;

	b->generation = b->sight.marker.epoch == b->shared->epoch ? b->sight.marker.generation + 1 : 1;
	redis_link_begin(l, 8);
	redis_link_text(l, "FCALL");
	redis_link_text(l, FUNCTION_CLAIM);
	redis_link_text(l, "2");
	redis_link_text(l, b->shared->owner_key);
	redis_link_text(l, b->shared->items_key);
	redis_link_number(l, b->shared->epoch);
	redis_link_number(l, b->generation);
	redis_link_text(l, b->shared->nonce);
	redis_link_end(l, ASKED_CLAIM);
}

void backup_claim(struct backup *b)
{
	backup_move(b, BACKUP_CLAIMING);
	b->judged = b->sight;
	b->not_used = NULL;
	claim_send(b);
}

static void look_refused(struct backup *b, const char *answer)
{
	refusal_told(&b->refusal, REFUSAL_AT_LOOK, answer, REFUSAL_TEXT_PLAIN, redis_link_clock_ms());
}

static void look_done(struct backup *b)
{
	const struct marker *m = &b->sight.marker;

	if (backup_is_live(b)) {
		/* After a change of paths: the server is the same process and still ours, so it has what we wrote. */
		if (m->epoch < b->shared->epoch)
			backup_give_up(b, "the server was emptied");
		else
			claim_send(b);
		return;
	}
	if (b->state == BACKUP_CLAIMING || b->state == BACKUP_CLAIMED)
		return; /* it was asked again before the claim was sent */
	/* One that was left behind was away while the keys changed, and what nobody can read there is kept. */
	if (m->key[0] && !seal_has(b->shared->seal, m->key) && !b->shared->ops->is_behind(b)) {
		look_refused(b, REFUSAL_OTHER_KEY);
		backup_give_up(b, "the server is not usable");
		return;
	}
	refusal_lifted(&b->refusal, REFUSAL_AT_LOOK);
	b->sight.state = marker_judge(m, b->run_id);
	backup_move(b, BACKUP_SEEN);
	if (!b->is_probe)
		b->shared->ops->on_seen(b);
}

/* Lines of INFO by which a server cannot hold a queue; refusal.c has the words for the log. Policies with `volatile`
 * evict none of our keys, which have no time to live. */
static const char *const look_unfit[] = { "maxmemory_policy:allkeys", "role:slave", "cluster_enabled:1" };

/* 0 or LOOK_REFUSED. */
static int look_judge(struct backup *b, const char *info)
{
	const char *saves = strstr(info, "rdb_saves:"), *at;
	char line[64];

	b->has_saved = saves && strtoull(saves + strlen("rdb_saves:"), NULL, 10) > 0;
	for (size_t i = 0; i < sizeof look_unfit / sizeof *look_unfit; i++) {
		at = strstr(info, look_unfit[i]);
		if (!at)
			continue;
		snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\r\n"), at);
		look_refused(b, line);
		return LOOK_REFUSED;
	}
	return 0;
}

/* Of a server that tells nothing of its configuration, only a snapshot that was written shows that it saves. */
static int look_take_save(struct backup *b, const redisReply *reply)
{
	const bool told = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
			  reply->element[1]->type == REDIS_REPLY_STRING;
	const bool saves = told ? reply->element[1]->len > 0 : b->has_saved;

	if (saves && !b->saves_told && !b->is_probe)
		log_event(LOG_WARNING, NULL, "backup saves snapshots", "backup=%u effect=\"%s\" remedy=\"%s\"",
			b->index,
			"an operator's order may deliver mail of an old one again; a full disk stops the queue",
			"set its save to an empty text");
	b->saves_told = saves;
	return 0;
}

static int look_take_info(struct backup *b, const redisReply *reply)
{
	const char *at = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, "run_id:") : NULL;
	char run_id[RUN_ID_LEN + 1];

	if (!at || strlen(at) < 7 + RUN_ID_LEN)
		return -1;
	snprintf(run_id, sizeof run_id, "%.*s", (int)RUN_ID_LEN, at + 7);
	if (backup_is_live(b) && strcmp(run_id, b->run_id))
		return LOOK_RESTARTED;
	if (look_judge(b, reply->str))
		return LOOK_REFUSED;
	if (strcmp(run_id, b->run_id))
		b->saves_told = false;
	memcpy(b->run_id, run_id, sizeof run_id);
	return 0;
}

static int look_take(struct backup *b, enum backup_tag tag, const redisReply *reply)
{
	static const char *const load[] = { "FUNCTION", "LOAD", functions_text, NULL };

	switch (tag) {
	case ASKED_OWNER: return record_read(&b->sight.marker, reply);
	case ASKED_LIBRARY:
		if (reply->type != REDIS_REPLY_ARRAY)
			return -1;
		if (!reply->elements && !b->is_probe) { /* one that is only looked at needs none */
			redis_link_ask(&b->active->link, ASKED_LOAD, load);
			b->looks++;
		}
		return 0;
	case ASKED_LOAD: /* another gateway may have loaded it meanwhile */
		return reply->type == REDIS_REPLY_ERROR && !strstr(reply->str, "already exists") ? -1 : 0;
	case ASKED_SAVE: return look_take_save(b, reply);
	case ASKED_CHECK: return reply->type == REDIS_REPLY_STRING ? look_judge(b, reply->str) : 0;
	default: return look_take_info(b, reply);
	}
}

static void claim_answered(struct backup *b, const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ERROR) {
		backup_call_failed(b, reply->str);
		return;
	}
	if (backup_is_live(b)) {
		backup_send(b);
		return;
	}
	b->replaced.state = SIGHT_AWAY;
	if (reply->type == REDIS_REPLY_ARRAY && !record_read(&b->replaced.marker, reply))
		b->replaced.state = marker_judge(&b->replaced.marker, b->run_id);
	backup_move(b, BACKUP_CLAIMED);
	b->shared->ops->on_claimed(b);
}

void backup_look_answered(struct backup *b, enum backup_tag tag, const redisReply *reply)
{
	int r;

	if (tag == ASKED_CLAIM) {
		claim_answered(b, reply);
		return;
	}
	r = look_take(b, tag, reply);
	if (r == LOOK_RESTARTED) {
		backup_give_up(b, "the server restarted");
		return;
	}
	if (r) {
		if (r != LOOK_REFUSED)
			look_refused(b, reply->type == REDIS_REPLY_ERROR ? reply->str : "unexpected reply");
		backup_give_up(b, "the server is not usable");
		return;
	}
	if (tag < ASKED_SAVE && b->looks && !--b->looks)
		look_done(b);
}
