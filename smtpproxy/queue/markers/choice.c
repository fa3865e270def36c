/* choice.c: chooses a server for each place of the queue. */
#include "smtpproxy/queue/markers/choice.h"

#include <string.h>

static bool choice_is_candidate(unsigned server, unsigned at)
{
	return server == at || server >= BACKUPS;
}

static bool choice_is_away(const struct choice_server *s)
{
	return s->sight.state == SIGHT_AWAY;
}

/* NULL: none is marked. */
static const struct choice_server *choice_highest(const struct choice_server *servers, unsigned count)
{
	const struct choice_server *top = NULL;

	for (unsigned n = 0; n < count; n++)
		if (servers[n].sight.state == SIGHT_MARKED &&
			(!top || servers[n].sight.marker.version > top->sight.marker.version))
			top = &servers[n];
	return top;
}

/* The process that the marker names for the place @at; "": none. */
static const char *choice_named(const struct marker *m, unsigned at)
{
	return m->members[at][0] ? m->members[at] : m->apart[at];
}

/* @count: no server that answers is that process. */
static unsigned choice_running(const struct choice_server *servers, unsigned count, const char *run_id)
{
	for (unsigned n = 0; n < count; n++)
		if (!choice_is_away(&servers[n]) && !strcmp(servers[n].run_id, run_id))
			return n;
	return count;
}

/* One that may be the absent member of that place, best the present one. */
static unsigned choice_absent(
	const struct choice_server *servers, unsigned count, unsigned at, unsigned present, unsigned taken)
{
	if (choice_is_candidate(present, at) && present != taken && choice_is_away(&servers[present]))
		return present;
	for (unsigned n = 0; n < count; n++)
		if (choice_is_candidate(n, at) && n != taken && choice_is_away(&servers[n]))
			return n;
	return count;
}

static unsigned choice_latest(const struct choice_server *servers, unsigned count, unsigned at, unsigned taken)
{
	unsigned best = count;

	for (unsigned n = 0; n < count; n++) {
		const struct choice_server *s = &servers[n];
		/* A spare's marker names the place that it had. */
		const bool was_at = n == at || (n >= BACKUPS && !strcmp(s->sight.marker.members[at], s->run_id));

		if (n != taken && s->sight.state == SIGHT_MARKED && was_at &&
			(best == count || s->sight.marker.version > servers[best].sight.marker.version))
			best = n;
	}
	return best;
}

static unsigned choice_of(
	const struct choice_server *servers, unsigned count, unsigned at, unsigned present, unsigned taken)
{
	const struct choice_server *top = choice_highest(servers, count);
	const char *member = top ? choice_named(&top->sight.marker, at) : "";
	unsigned n = count;

	if (!top)
		return present;
	if (member[0])
		n = choice_running(servers, count, member);
	if (n < count && n != taken && choice_is_candidate(n, at))
		return n;
	n = member[0] ? choice_absent(servers, count, at, present, taken) : count;
	if (n == count)
		n = choice_latest(servers, count, at, taken);
	return n < count ? n : at;
}

void choice_make(const struct choice_server *servers, unsigned count, unsigned chosen[static BACKUPS])
{
	const unsigned present[BACKUPS] = { chosen[0], chosen[1] };

	/* A place whose member answers chooses first, so that the other one cannot take that server. */
	chosen[0] = choice_of(servers, count, 0, present[0], count);
	chosen[1] = choice_of(servers, count, 1, present[1], chosen[0]);
	if (choice_is_away(&servers[chosen[0]])) {
		chosen[1] = choice_of(servers, count, 1, present[1], count);
		chosen[0] = choice_of(servers, count, 0, present[0], chosen[1]);
	}
}

/* It names a server that is not there: with another one, or alone, that one may have gone on. */
static bool choice_lacks_member(const struct choice_server *servers, unsigned count,
	const unsigned chosen[static BACKUPS], const struct marker *m)
{
	for (unsigned i = 0; i < BACKUPS; i++) {
		const unsigned n = choice_running(servers, count, choice_named(m, i));

		if (choice_named(m, i)[0] && n != chosen[0] && n != chosen[1])
			return true;
	}
	return false;
}

/* A member of the highest marker, or of one that would be read, is not among the chosen ones. */
static bool choice_lacks_any(
	const struct choice_server *servers, unsigned count, const unsigned chosen[static BACKUPS], unsigned mask)
{
	const uint64_t version = choice_highest(servers, count)->sight.marker.version;

	for (unsigned n = 0; n < count; n++) {
		const struct sight *s = &servers[n].sight;
		const bool is_read = (mask & 1 && n == chosen[0]) || (mask & 2 && n == chosen[1]);

		if (s->state == SIGHT_MARKED && (is_read || s->marker.version == version) &&
			choice_lacks_member(servers, count, chosen, &s->marker))
			return true;
	}
	return false;
}

/* A member that did not answer may have items that the others lack: it may have gone on alone under a higher
 * version. */
static bool place_lacks_member(const struct sight *sights, unsigned mask)
{
	for (unsigned i = 0; i < BACKUPS; i++)
		for (unsigned j = 0; j < BACKUPS; j++)
			if (mask & 1u << i && sights[j].state == SIGHT_AWAY &&
				(sights[i].marker.members[j][0] || sights[i].marker.apart[j][0]))
				return true;
	return false;
}

static bool place_is_away(const struct sight *sights)
{
	return sights[0].state == SIGHT_AWAY || sights[1].state == SIGHT_AWAY;
}

/* The backups that have to be read beside the chosen ones: those that these name as apart, and those that went on
 * without any of them. */
static unsigned places_beside(const struct sight *sights, unsigned mask)
{
	struct marker read[BACKUPS] = { 0 };
	unsigned others = 0;

	for (unsigned i = 0; i < BACKUPS; i++)
		if (mask & 1u << i)
			read[i] = sights[i].marker;
	for (unsigned j = 0; j < BACKUPS; j++) {
		if (sights[j].state == SIGHT_MARKED && !marker_is_behind(&sights[j].marker, read))
			others |= 1u << j;
		for (unsigned i = 0; i < BACKUPS; i++)
			if (mask & 1u << i && marker_is_apart(&sights[i].marker, &sights[j], j))
				others |= 1u << j;
	}
	return others;
}

/* By what the servers of the places say; the others of the file are not asked. */
static enum recovery_step places_decide(
	const struct sight sights[static BACKUPS], enum recovery_trust trust, unsigned *mask)
{
	uint64_t version = 0;

	for (unsigned i = 0; i < BACKUPS; i++)
		if (sights[i].state == SIGHT_MARKED && sights[i].marker.version > version)
			version = sights[i].marker.version;
	*mask = 0;
	if (!version)
		return place_is_away(sights) ? RECOVERY_WAIT : RECOVERY_BEGIN;
	for (unsigned i = 0; i < BACKUPS; i++)
		if (sights[i].state == SIGHT_MARKED && sights[i].marker.version == version)
			*mask |= 1u << i;
	/* Those of the highest version are complete, each of them. What went on beside them is in none of them. */
	*mask |= places_beside(sights, *mask);
	if (trust == TRUST_NOTHING && place_is_away(sights))
		return RECOVERY_WAIT;
	if (trust == TRUST_ANSWERS && place_lacks_member(sights, *mask))
		return RECOVERY_WAIT;
	return RECOVERY_READ;
}

enum recovery_step choice_decide(const struct choice_server *servers, unsigned count,
	const unsigned chosen[static BACKUPS], enum recovery_trust trust, unsigned *mask)
{
	const struct sight sights[BACKUPS] = { servers[chosen[0]].sight, servers[chosen[1]].sight };
	enum recovery_step step;
	unsigned away = 0;

	if (count == BACKUPS)
		return places_decide(sights, trust, mask);
	step = places_decide(sights, TRUST_PRESENT, mask);
	for (unsigned n = 0; n < count; n++)
		away += (unsigned)choice_is_away(&servers[n]);
	if (step == RECOVERY_BEGIN && choice_highest(servers, count)) /* the servers of the file changed their places */
		return RECOVERY_WAIT;
	if (step == RECOVERY_WAIT || !away)
		return step;
	if (step == RECOVERY_BEGIN || trust == TRUST_NOTHING)
		return RECOVERY_WAIT;
	if (trust == TRUST_ANSWERS && choice_lacks_any(servers, count, chosen, *mask))
		return RECOVERY_WAIT;
	return step;
}

unsigned choice_next(unsigned count, const unsigned chosen[static BACKUPS], unsigned at, unsigned fits)
{
	/* Candidates as 0: the server of `backups`, 1...: the spares. */
	const unsigned candidates = count - BACKUPS + 1;
	const unsigned present = chosen[at] < BACKUPS ? 0 : chosen[at] - BACKUPS + 1;

	for (unsigned step = 1; step < candidates; step++) {
		const unsigned c = (present + step) % candidates;
		const unsigned server = c ? c + BACKUPS - 1 : at;

		if (server != chosen[1 - at] && fits & 1u << server)
			return server;
	}
	return count;
}
