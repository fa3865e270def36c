/* backup_look.c: asks a server for its identity and its owner (INFO, the owner's record), and claims it. */
#include "smtpproxy/queue/backup/backup_inside.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/log.h"

#define LOOK_RESTARTED 1 /* the server process is another one than before */
#define LOOK_REFUSED   2 /* it cannot hold a queue, as it is */

static void ask_owner(struct backup *b)
{
	redis_link_ask(&b->active->link, ASKED_OWNER, (const char *const[]){ "HGETALL", b->shared->owner_key, NULL });
	b->looks++;
}

/* The sections of INFO that judge() and take_run_id() read, and CONFIG, which the user may have no right to. */
void backup_ask_policies(struct backup *b, enum backup_tag tag)
{
	static const char *const info[] = { "INFO", "server", "memory", "persistence", "replication", "cluster", NULL };
	static const char *const save[] = { "CONFIG", "GET", "save", NULL };

	redis_link_ask(&b->active->link, tag, info);
	redis_link_ask(&b->active->link, ASKED_SAVE, save);
}

void backup_look(struct backup *b)
{
	static const char *const library[] = { "FUNCTION", "LIST", "LIBRARYNAME", FUNCTIONS_LIBRARY, NULL };

	backup_ask_policies(b, ASKED_INFO);
	redis_link_ask(&b->active->link, ASKED_LIBRARY, library);
	b->looks = 2;
	ask_owner(b);
}

void backup_look_again(struct backup *b)
{
	if (b->active && !b->looks && b->active->link.state == REDIS_LINK_READY)
		ask_owner(b);
}

#define TEXT(member)   offsetof(struct marker, member), sizeof(((struct marker *)0)->member)
#define NUMBER(member) offsetof(struct marker, member), 0

static const struct owner_field {
	const char *name;
	size_t at, cap; /* in struct marker; 0: a number */
} owner_fields[] = {
	{ "epoch", NUMBER(epoch) },
	{ "generation", NUMBER(generation) },
	{ "renewals", NUMBER(renewals) },
	{ "nonce", TEXT(nonce) },
	/* the MARKER_FIELDS, which a gateway writes */
	{ "version", NUMBER(version) },
	{ "run_id", TEXT(run_id) },
	{ "member0", TEXT(members[0]) },
	{ "member1", TEXT(members[1]) },
	{ "apart0", TEXT(apart[0]) },
	{ "apart1", TEXT(apart[1]) },
	{ "apart_version", NUMBER(apart_version) },
	{ "left0", TEXT(left[0].run_id) },
	{ "left1", TEXT(left[1].run_id) },
	{ "left_version0", NUMBER(left[0].version) },
	{ "left_version1", NUMBER(left[1].version) },
	{ "left_sent0", NUMBER(left[0].sent) },
	{ "left_sent1", NUMBER(left[1].sent) },
	{ "left_by0", TEXT(left[0].by) },
	{ "left_by1", TEXT(left[1].by) },
	{ "unread", NUMBER(unread) },
	{ "owners", TEXT(owners) },
	{ "replaced", TEXT(replaced) },
	{ "key", TEXT(key) },
	{ "by", TEXT(by) },
};

#define OWNER_FIELDS (sizeof owner_fields / sizeof *owner_fields)
#define CLAIM_FIELDS (OWNER_FIELDS - MARKER_FIELDS)

_Static_assert(CLAIM_FIELDS == 4, "the fields that a claim writes");

void backup_mark_out(struct backup *b)
{
	struct backup_shared *s = b->shared;
	struct marker_left *ours = &s->marker.left[b->index];
	struct marker m;

	marker_left_of(ours, b->run_id); /* it may execute this marker although its answer is lost */
	ours->sent = s->marker.version;
	memcpy(ours->by, s->nonce, sizeof ours->by);
	m = s->marker;
	for (unsigned i = 0; i < BACKUPS; i++)
		if (m.members[i][0] || m.apart[i][0])
			m.left[i] = (struct marker_left){ 0 };
	memcpy(m.run_id, b->run_id, sizeof m.run_id);
	memcpy(m.by, s->nonce, sizeof m.by);
	snprintf(m.key, sizeof m.key, "%s", seal_print(s->seal));
	for (const struct owner_field *f = &owner_fields[CLAIM_FIELDS]; f < &owner_fields[OWNER_FIELDS]; f++) {
		redis_link_text(&b->active->link, f->name);
		if (f->cap)
			redis_link_text(&b->active->link, (const char *)&m + f->at);
		else
			redis_link_number(&b->active->link, *(const uint64_t *)((const char *)&m + f->at));
	}
}

static void take_field(struct marker *m, const char *name, const char *value)
{
	const struct owner_field *f = owner_fields;

	while (f < &owner_fields[OWNER_FIELDS] && strcmp(name, f->name))
		f++;
	if (f == &owner_fields[OWNER_FIELDS])
		return;
	if (f->cap)
		snprintf((char *)m + f->at, f->cap, "%.*s", (int)f->cap - 1, value);
	else
		*(uint64_t *)((char *)m + f->at) = strtoull(value, NULL, 10);
}

static int take_owner(struct marker *m, const redisReply *reply)
{
	memset(m, 0, sizeof *m);
	if (reply->type != REDIS_REPLY_ARRAY)
		return -1;
	for (size_t i = 0; i + 1 < reply->elements; i += 2) {
		if (reply->element[i]->type != REDIS_REPLY_STRING || reply->element[i + 1]->type != REDIS_REPLY_STRING)
			return -1;
		take_field(m, reply->element[i]->str, reply->element[i + 1]->str);
	}
	return 0;
}

static void claim(struct backup *b)
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
	claim(b);
}

static void looked(struct backup *b)
{
	const struct marker *m = &b->sight.marker;

	if (backup_is_live(b)) {
		/* After a change of paths: the server is the same process and still ours, so it has what we wrote. */
		if (m->epoch < b->shared->epoch)
			backup_give_up(b, "the server was emptied");
		else
			claim(b);
		return;
	}
	if (b->state == BACKUP_CLAIMING || b->state == BACKUP_CLAIMED)
		return; /* it was asked again before the claim was sent */
	/* One that was left behind was away while the keys changed, and what nobody can read there is kept. */
	if (m->key[0] && !seal_has(b->shared->seal, m->key) && !queue_is_behind(b)) {
		backup_refused(b, REFUSAL_AT_LOOK, OTHER_KEY);
		backup_give_up(b, "the server is not usable");
		return;
	}
	backup_let_in(b, REFUSAL_AT_LOOK);
	b->sight.state = marker_judge(m, b->run_id);
	backup_move(b, BACKUP_SEEN);
	if (!b->is_probe)
		queue_on_seen(b);
}

/* Lines of INFO by which a server cannot hold a queue; backup.c has the words for the log. Policies with `volatile`
 * evict none of our keys, which have no time to live. */
static const char *const unfit[] = { "maxmemory_policy:allkeys", "role:slave", "cluster_enabled:1" };

/* 0 or LOOK_REFUSED. */
static int judge(struct backup *b, const char *info)
{
	const char *saves = strstr(info, "rdb_saves:"), *at;
	char line[64];

	b->has_saved = saves && strtoull(saves + strlen("rdb_saves:"), NULL, 10) > 0;
	for (size_t i = 0; i < sizeof unfit / sizeof *unfit; i++) {
		at = strstr(info, unfit[i]);
		if (!at)
			continue;
		snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\r\n"), at);
		backup_refused(b, REFUSAL_AT_LOOK, line);
		return LOOK_REFUSED;
	}
	return 0;
}

/* Of a server that tells nothing of its configuration, only a snapshot that was written shows that it saves. */
static int take_save(struct backup *b, const redisReply *reply)
{
	const bool told = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
			  reply->element[1]->type == REDIS_REPLY_STRING;
	const int saves = told ? reply->element[1]->len > 0 : b->has_saved;

	if (saves && !b->saves_told && !b->is_probe)
		log_event(LOG_WARNING, NULL, "backup saves snapshots", "backup=%u effect=\"%s\" remedy=\"%s\"",
			b->index,
			"an operator's order may deliver mail of an old one again; a full disk stops the queue",
			"set its save to an empty text");
	b->saves_told = (uint8_t)saves;
	return 0;
}

static int take_info(struct backup *b, const redisReply *reply)
{
	const char *at = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, "run_id:") : NULL;
	char run_id[RUN_ID_LEN + 1];

	if (!at || strlen(at) < 7 + RUN_ID_LEN)
		return -1;
	snprintf(run_id, sizeof run_id, "%.*s", (int)RUN_ID_LEN, at + 7);
	if (backup_is_live(b) && strcmp(run_id, b->run_id))
		return LOOK_RESTARTED;
	if (judge(b, reply->str))
		return LOOK_REFUSED;
	if (strcmp(run_id, b->run_id))
		b->saves_told = 0;
	memcpy(b->run_id, run_id, sizeof run_id);
	return 0;
}

static int take_look(struct backup *b, enum backup_tag tag, const redisReply *reply)
{
	static const char *const load[] = { "FUNCTION", "LOAD", functions_text, NULL };

	switch (tag) {
	case ASKED_OWNER: return take_owner(&b->sight.marker, reply);
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
	case ASKED_SAVE: return take_save(b, reply);
	case ASKED_CHECK: return reply->type == REDIS_REPLY_STRING ? judge(b, reply->str) : 0;
	default: return take_info(b, reply);
	}
}

void backup_look_answered(struct backup *b, enum backup_tag tag, const redisReply *reply)
{
	int r = take_look(b, tag, reply);

	if (r == LOOK_RESTARTED) {
		backup_give_up(b, "the server restarted");
		return;
	}
	if (r) {
		if (r != LOOK_REFUSED)
			backup_refused(
				b, REFUSAL_AT_LOOK, reply->type == REDIS_REPLY_ERROR ? reply->str : "unexpected reply");
		backup_give_up(b, "the server is not usable");
		return;
	}
	if (tag < ASKED_SAVE && b->looks && !--b->looks)
		looked(b);
}

void backup_claim_answered(struct backup *b, const redisReply *reply)
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
	if (reply->type == REDIS_REPLY_ARRAY && !take_owner(&b->replaced.marker, reply))
		b->replaced.state = marker_judge(&b->replaced.marker, b->run_id);
	backup_move(b, BACKUP_CLAIMED);
	queue_on_claimed(b);
}
