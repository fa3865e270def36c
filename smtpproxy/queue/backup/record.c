/* record.c: one table of the fields of an owner's record, for both directions. */
#include "smtpproxy/queue/backup/record.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(member)   offsetof(struct marker, member), sizeof(((struct marker *)0)->member)
#define NUMBER(member) offsetof(struct marker, member), 0

static const struct record_field {
	const char *name;
	size_t at, cap; /* in struct marker; 0: a number */
} record_fields[] = {
	{ "epoch", NUMBER(epoch) },
	{ "generation", NUMBER(generation) },
	{ "renewals", NUMBER(renewals) },
	{ "nonce", TEXT(nonce) },
	/* the RECORD_MARKER_FIELDS, which a gateway writes */
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

#define RECORD_FIELDS (sizeof record_fields / sizeof *record_fields)
#define CLAIM_FIELDS  (RECORD_FIELDS - RECORD_MARKER_FIELDS)

_Static_assert(CLAIM_FIELDS == 4, "the fields that a claim writes");

void record_write(struct redis_link *l, const struct marker *m)
{
	for (const struct record_field *f = &record_fields[CLAIM_FIELDS]; f < &record_fields[RECORD_FIELDS]; f++) {
		redis_link_text(l, f->name);
		if (f->cap)
			redis_link_text(l, (const char *)m + f->at);
		else
			redis_link_number(l, *(const uint64_t *)((const char *)m + f->at));
	}
}

static void record_take(struct marker *m, const char *name, const char *value)
{
	const struct record_field *f = record_fields;

	while (f < &record_fields[RECORD_FIELDS] && strcmp(name, f->name))
		f++;
	if (f == &record_fields[RECORD_FIELDS])
		return;
	if (f->cap)
		snprintf((char *)m + f->at, f->cap, "%.*s", (int)f->cap - 1, value);
	else
		*(uint64_t *)((char *)m + f->at) = strtoull(value, NULL, 10);
}

int record_read(struct marker *m, const redisReply *reply)
{
	memset(m, 0, sizeof *m);
	if (reply->type != REDIS_REPLY_ARRAY)
		return -1;
	for (size_t i = 0; i + 1 < reply->elements; i += 2) {
		if (reply->element[i]->type != REDIS_REPLY_STRING || reply->element[i + 1]->type != REDIS_REPLY_STRING)
			return -1;
		record_take(m, reply->element[i]->str, reply->element[i + 1]->str);
	}
	return 0;
}
