/* marker.c: judges markers. */
#include "smtpproxy/queue/marker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum sight_state marker_judge(const struct marker *m, const char *run_id)
{
	return m->version && !strcmp(m->run_id, run_id) ? SIGHT_MARKED : SIGHT_EMPTY;
}

static uint64_t highest_version(const struct sight *sights)
{
	uint64_t version = 0;

	for (unsigned i = 0; i < BACKUPS; i++)
		if (sights[i].state == SIGHT_MARKED && sights[i].marker.version > version)
			version = sights[i].marker.version;
	return version;
}

/* A member that did not answer may have items that the others lack: it may have gone on alone under a higher
 * version. */
static int member_is_missing(const struct sight *sights, unsigned mask)
{
	for (unsigned i = 0; i < BACKUPS; i++)
		for (unsigned j = 0; j < BACKUPS; j++)
			if (mask & 1u << i && sights[j].state == SIGHT_AWAY &&
				(sights[i].marker.members[j][0] || sights[i].marker.apart[j][0]))
				return 1;
	return 0;
}

int marker_is_apart(const struct marker *m, const struct sight *other, unsigned at)
{
	return other->state == SIGHT_MARKED && m->apart[at][0] && !strcmp(m->apart[at], other->marker.run_id) &&
	       other->marker.version >= m->apart_version;
}

void marker_left_of(struct marker_left *l, const char run_id[static RUN_ID_LEN + 1])
{
	if (!strcmp(l->run_id, run_id))
		return;
	*l = (struct marker_left){ 0 };
	memcpy(l->run_id, run_id, sizeof l->run_id);
}

int marker_changed(const struct sight *before, const struct sight *now)
{
	const struct marker *m = &before->marker, *n = &now->marker;

	if (now->state == SIGHT_AWAY)
		return 0;
	if (now->state != before->state || m->epoch != n->epoch || strcmp(m->nonce, n->nonce))
		return 1;
	return now->state == SIGHT_MARKED && (m->version != n->version || strcmp(m->by, n->by));
}

static int is_marked_by(const struct marker *m, const char *gateway)
{
	return gateway[0] && m->by_version == m->version && !strcmp(m->by, gateway);
}

static int leaves_behind(const struct marker_left *l, const struct marker *m)
{
	if (!l->run_id[0] || strcmp(l->run_id, m->run_id))
		return 0;
	return m->version <= l->version || (m->version <= l->sent && is_marked_by(m, l->by));
}

/* Replaced servers */

static uint64_t replaced_number(const char *at)
{
	char digits[17] = "";

	memcpy(digits, at, 16);
	return strtoull(digits, NULL, 16);
}

/* @at has REPLACED_LEN bytes. */
static struct marker_left replaced_read(const char *at)
{
	struct marker_left l = { 0 };

	memcpy(l.run_id, at, RUN_ID_LEN);
	l.version = replaced_number(at + RUN_ID_LEN);
	l.sent = replaced_number(at + RUN_ID_LEN + 16);
	if (at[RUN_ID_LEN + 32] != '-')
		memcpy(l.by, at + RUN_ID_LEN + 32, NONCE_LEN);
	return l;
}

static int has_replaced(const char *at)
{
	return strlen(at) >= REPLACED_LEN;
}

int marker_is_replaced(const char *replaced, const struct marker *m)
{
	for (const char *at = replaced; has_replaced(at); at += REPLACED_LEN) {
		const struct marker_left l = replaced_read(at);

		if (leaves_behind(&l, m))
			return 1;
	}
	return 0;
}

#define NOBODY "--------------------------------"

/* To the front. What was known of the same process stays known. */
void marker_note_replaced(char replaced[static REPLACED_MAX + 1], const struct marker_left *l)
{
	char others[REPLACED_MAX + 1] = "";
	struct marker_left all = *l;
	size_t len = 0;

	if (strlen(l->run_id) != RUN_ID_LEN)
		return;
	for (const char *at = replaced; has_replaced(at); at += REPLACED_LEN) {
		const struct marker_left known = replaced_read(at);

		if (!strcmp(known.run_id, l->run_id)) {
			all = l->sent ? *l : known;
			all.version = known.version > l->version ? known.version : l->version;
			continue;
		}
		if (len == REPLACED_MAX - REPLACED_LEN)
			break;
		memcpy(others + len, at, REPLACED_LEN);
		len += REPLACED_LEN;
	}
	snprintf(replaced, REPLACED_MAX + 1, "%s%016llx%016llx%.32s%s", all.run_id, (unsigned long long)all.version,
		(unsigned long long)all.sent, strlen(all.by) == NONCE_LEN ? all.by : NOBODY, others);
}

/* From the oldest to the latest, so that the order stays. */
void marker_merge_replaced(char replaced[static REPLACED_MAX + 1], const char *others)
{
	for (size_t n = strlen(others) / REPLACED_LEN; n > 0; n--) {
		const struct marker_left l = replaced_read(others + (n - 1) * REPLACED_LEN);

		marker_note_replaced(replaced, &l);
	}
}

int marker_is_behind(const struct marker *m, const struct marker read[static BACKUPS])
{
	for (unsigned i = 0; i < BACKUPS; i++)
		if (read[i].run_id[0] &&
			(!strcmp(m->members[i], read[i].run_id) || leaves_behind(&read[i].left[0], m) ||
				leaves_behind(&read[i].left[1], m) || marker_is_replaced(read[i].replaced, m)))
			return 1;
	return 0;
}

static const char *owner_at(const char *owners, const char *nonce)
{
	for (const char *at = owners; strlen(at) >= OWNER_LEN; at += OWNER_LEN)
		if (!strncmp(at, nonce, NONCE_LEN))
			return at;
	return NULL;
}

uint64_t marker_owner_version(const char *owners, const char *nonce)
{
	const char *at = strlen(nonce) == NONCE_LEN ? owner_at(owners, nonce) : NULL;
	char version[17] = "";

	if (at)
		memcpy(version, at + NONCE_LEN, 16);
	return strtoull(version, NULL, 16);
}

/* To the front. Of too many the oldest one goes. */
static void note_owner(char owners[static OWNERS_LEN + 1], const char *nonce, uint64_t version)
{
	const uint64_t known = marker_owner_version(owners, nonce);
	char others[OWNERS_LEN + 1] = "";
	size_t len = 0;

	for (const char *at = owners; strlen(at) >= OWNER_LEN && len < OWNERS_LEN - OWNER_LEN; at += OWNER_LEN) {
		if (!strncmp(at, nonce, NONCE_LEN))
			continue;
		memcpy(others + len, at, OWNER_LEN);
		len += OWNER_LEN;
	}
	snprintf(owners, OWNERS_LEN + 1, "%.*s%016llx%s", (int)NONCE_LEN, nonce,
		(unsigned long long)(known > version ? known : version), others);
}

void marker_note_owners(char owners[static OWNERS_LEN + 1], const struct marker *m)
{
	const size_t count = strlen(m->owners) / OWNER_LEN;
	char nonce[NONCE_LEN + 1] = "";

	if (m->by_version != m->version || strlen(m->by) != NONCE_LEN)
		return;
	for (size_t n = count; n > 0; n--) {
		memcpy(nonce, m->owners + (n - 1) * OWNER_LEN, NONCE_LEN);
		note_owner(owners, nonce, marker_owner_version(m->owners, nonce));
	}
	note_owner(owners, m->by, m->version);
}

static int any_is_away(const struct sight *sights)
{
	for (unsigned i = 0; i < BACKUPS; i++)
		if (sights[i].state == SIGHT_AWAY)
			return 1;
	return 0;
}

/* The backups that the markers of the chosen ones name as apart. */
static unsigned apart_of(const struct sight *sights, unsigned mask)
{
	unsigned apart = 0;

	for (unsigned i = 0; i < BACKUPS; i++)
		for (unsigned j = 0; j < BACKUPS; j++)
			if (mask & 1u << i && marker_is_apart(&sights[i].marker, &sights[j], j))
				apart |= 1u << j;
	return apart;
}

/* The backups that went on without any of the chosen ones. */
static unsigned branches_of(const struct sight *sights, unsigned mask)
{
	struct marker read[BACKUPS] = { 0 };
	unsigned branches = 0;

	for (unsigned i = 0; i < BACKUPS; i++)
		if (mask & 1u << i)
			read[i] = sights[i].marker;
	for (unsigned i = 0; i < BACKUPS; i++)
		if (sights[i].state == SIGHT_MARKED && !marker_is_behind(&sights[i].marker, read))
			branches |= 1u << i;
	return branches;
}

enum recovery_step recovery_decide(const struct sight sights[static BACKUPS], enum recovery_trust trust, unsigned *mask)
{
	uint64_t version = highest_version(sights);

	*mask = 0;
	if (!version)
		return any_is_away(sights) ? RECOVERY_WAIT : RECOVERY_BEGIN;
	for (unsigned i = 0; i < BACKUPS; i++)
		if (sights[i].state == SIGHT_MARKED && sights[i].marker.version == version)
			*mask |= 1u << i;
	*mask |= apart_of(sights, *mask) | branches_of(sights, *mask);
	if (trust == TRUST_NOTHING && any_is_away(sights))
		return RECOVERY_WAIT;
	if (trust == TRUST_ANSWERS && member_is_missing(sights, *mask))
		return RECOVERY_WAIT;
	return RECOVERY_READ;
}
