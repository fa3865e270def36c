/* choice.h: which servers a starting gateway takes for the two places of its queue, if there are spares, and whether
 * enough is known to begin with them. A part of its own, because a wrong choice loses mail, and each case has to be a
 * test. No sockets, no clock.
 *
 * A server of `backups` belongs to one place; a spare may take either. A spare that was marked says in its marker
 * whose place it had. The marker of the highest version names the server of each place by its run_id. So it tells which
 * ones hold the queue, whatever their addresses are.
 *
 * Each set of members is named by a marker on a member of the set before. So if all members of the highest marker that
 * is seen answer, there is no later set, because one of them would know. If one of them does not answer, or is another
 * process now, the queue may have gone on without those that are seen: then every server of the file has to answer.
 */
#pragma once

#include "smtpproxy/queue/markers/marker.h"

#define SPARES_MAX  4u
#define SERVERS_MAX (BACKUPS + SPARES_MAX)

/* A server of the file: first those of `backups`, then the spares. */
struct choice_server {
	struct sight sight;
	char run_id[RUN_ID_LEN + 1]; /* of one that is not AWAY */
};

enum recovery_step {
	RECOVERY_WAIT,  /* not enough is known */
	RECOVERY_BEGIN, /* nothing was ever stored: begin empty */
	RECOVERY_READ,  /* read the backups of the mask */
};

/* How far the absence of a member may be ignored. */
enum recovery_trust {
	TRUST_NOTHING, /* every server has to answer, also one that is no member, because it may have gone on alone */
	TRUST_ANSWERS, /* every member has to answer: always for a standby */
	TRUST_PRESENT, /* the members that answered are enough, because the others had time to answer */
};

/* @chosen: the numbers of the servers that the places have now; and then, those that they should have. */
void choice_make(const struct choice_server *servers, unsigned count, unsigned chosen[static BACKUPS]);

/* @mask: for READ, a bit for each place whose server is read and united. If no server is marked, BEGIN needs an answer
 * of all: one empty server proves nothing while another one is absent. @chosen: of choice_make(). @count is BACKUPS:
 * there are no spares. */
enum recovery_step choice_decide(const struct choice_server *servers, unsigned count,
	const unsigned chosen[static BACKUPS], enum recovery_trust trust, unsigned *mask);

/* The next server that takes the place @at of @chosen: the first behind the present one, in the order of `backups` and
 * spares, for which @fits has a bit. @count: none. */
unsigned choice_next(unsigned count, const unsigned chosen[static BACKUPS], unsigned at, unsigned fits);
