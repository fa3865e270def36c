/* marker.c: judges markers. */
#include "smtpproxy/queue/markers/marker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum sight_state marker_judge(const struct marker *m, const char *run_id)
{
	return m->version && !strcmp(m->run_id, run_id) ? SIGHT_MARKED : SIGHT_EMPTY;
}

bool marker_is_apart(const struct marker *m, const struct sight *other, unsigned at)
{
	return other->state == SIGHT_MARKED && m->apart[at][0] && !strcmp(m->apart[at], other->marker.run_id) &&
	       other->marker.version >= m->apart_version;
}

struct marker_left *marker_left_of(struct marker *m, unsigned at, const char run_id[static RUN_ID_LEN + 1])
{
	struct marker_left *l = &m->left[at];

	if (strcmp(l->run_id, run_id)) {
		*l = (struct marker_left){ 0 };
		memcpy(l->run_id, run_id, sizeof l->run_id);
	}
	return l;
}

static bool leaves_behind(const struct marker_left *l, const struct marker *m)
{
	if (!l->run_id[0] || strcmp(l->run_id, m->run_id))
		return false;
	return m->version <= l->version || (m->version <= l->sent && l->by[0] && !strcmp(m->by, l->by));
}

/* Lists: entries of one length, of which the first bytes are the name */

static const char *list_find(const char *list, size_t entry_len, const char *name, size_t name_len)
{
	for (; strlen(list) >= entry_len; list += entry_len)
		if (!strncmp(list, name, name_len))
			return list;
	return NULL;
}

/* The entry of that name, the first one from now on. Of more than @kept the oldest one goes. */
static void list_to_front(char *list, size_t kept, const char *entry, size_t name_len)
{
	const size_t entry_len = strlen(entry);
	char others[REPLACED_MAX] = "";
	size_t len = 0;

	for (const char *at = list; strlen(at) >= entry_len && len < (kept - 1) * entry_len; at += entry_len) {
		if (!strncmp(at, entry, name_len))
			continue;
		memcpy(others + len, at, entry_len);
		len += entry_len;
	}
	memcpy(list, entry, entry_len);
	memcpy(list + entry_len, others, len);
	list[entry_len + len] = '\0';
}

static uint64_t list_number(const char *at)
{
	char digits[17] = "";

	memcpy(digits, at, 16);
	return strtoull(digits, NULL, 16);
}

/* Replaced servers */

/* @at has REPLACED_LEN bytes; NULL: none. */
static struct marker_left replaced_read(const char *at)
{
	struct marker_left l = { 0 };

	if (!at)
		return l;
	memcpy(l.run_id, at, RUN_ID_LEN);
	l.version = list_number(at + RUN_ID_LEN);
	l.sent = list_number(at + RUN_ID_LEN + 16);
	if (at[RUN_ID_LEN + 32] != '-')
		memcpy(l.by, at + RUN_ID_LEN + 32, NONCE_LEN);
	return l;
}

bool marker_is_replaced(const char *replaced, const struct marker *m)
{
	const struct marker_left l = replaced_read(list_find(replaced, REPLACED_LEN, m->run_id, RUN_ID_LEN));

	return leaves_behind(&l, m);
}

#define NOBODY "--------------------------------"

/* What was known of the same process stays known. */
void marker_note_replaced(char replaced[static REPLACED_MAX + 1], const struct marker_left *l)
{
	const struct marker_left known = replaced_read(list_find(replaced, REPLACED_LEN, l->run_id, RUN_ID_LEN));
	const struct marker_left *last = l->sent || !known.run_id[0] ? l : &known;
	char entry[REPLACED_LEN + 1];

	if (strlen(l->run_id) != RUN_ID_LEN)
		return;
	snprintf(entry, sizeof entry, "%s%016llx%016llx%s", l->run_id,
		(unsigned long long)(known.version > l->version ? known.version : l->version),
		(unsigned long long)last->sent, strlen(last->by) == NONCE_LEN ? last->by : NOBODY);
	list_to_front(replaced, REPLACED_KEPT, entry, RUN_ID_LEN);
}

/* From the oldest to the latest, so that the order stays. */
void marker_merge_replaced(char replaced[static REPLACED_MAX + 1], const char *others)
{
	for (size_t n = strlen(others) / REPLACED_LEN; n > 0; n--) {
		const struct marker_left l = replaced_read(others + (n - 1) * REPLACED_LEN);

		marker_note_replaced(replaced, &l);
	}
}

bool marker_is_behind(const struct marker *m, const struct marker read[static BACKUPS])
{
	for (unsigned i = 0; i < BACKUPS; i++)
		if (read[i].run_id[0] &&
			(!strcmp(m->members[i], read[i].run_id) || leaves_behind(&read[i].left[0], m) ||
				leaves_behind(&read[i].left[1], m) || marker_is_replaced(read[i].replaced, m)))
			return true;
	return false;
}

uint64_t marker_owner_version(const char *owners, const char *nonce)
{
	const char *at = strlen(nonce) == NONCE_LEN ? list_find(owners, OWNER_LEN, nonce, NONCE_LEN) : NULL;

	return at ? list_number(at + NONCE_LEN) : 0;
}

static void owner_note(char owners[static OWNERS_LEN + 1], const char *nonce, uint64_t version)
{
	const uint64_t known = marker_owner_version(owners, nonce);
	char entry[OWNER_LEN + 1];

	snprintf(entry, sizeof entry, "%s%016llx", nonce, (unsigned long long)(known > version ? known : version));
	list_to_front(owners, OWNERS_KEPT, entry, NONCE_LEN);
}

void marker_note_owners(char owners[static OWNERS_LEN + 1], const struct marker *m)
{
	char nonce[NONCE_LEN + 1] = "";

	if (strlen(m->by) != NONCE_LEN)
		return;
	for (size_t n = strlen(m->owners) / OWNER_LEN; n > 0; n--) {
		memcpy(nonce, m->owners + (n - 1) * OWNER_LEN, NONCE_LEN);
		owner_note(owners, nonce, marker_owner_version(m->owners, nonce));
	}
	owner_note(owners, m->by, m->version);
}
