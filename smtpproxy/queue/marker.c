/* marker.c: judges markers. */
#include "smtpproxy/queue/marker.h"

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

int marker_names(const struct marker *m, char run_ids[static BACKUPS][RUN_ID_LEN + 1])
{
	for (unsigned i = 0; i < BACKUPS; i++)
		if (run_ids[i][0] && !strcmp(m->members[i], run_ids[i]))
			return 1;
	return 0;
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
	char run_ids[BACKUPS][RUN_ID_LEN + 1] = { 0 };
	unsigned branches = 0;

	for (unsigned i = 0; i < BACKUPS; i++)
		if (mask & 1u << i)
			memcpy(run_ids[i], sights[i].marker.run_id, sizeof run_ids[i]);
	for (unsigned i = 0; i < BACKUPS; i++)
		if (sights[i].state == SIGHT_MARKED && !marker_names(&sights[i].marker, run_ids))
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
