/* spares.h: servers that take the place of a lost backup. A part of its own, because the rest of the queue knows two
 * places and not which server has them. Those of the file that no place uses are watched by probes, which only look.
 *
 * While the queue is ACTIVE and the other backup is in sync, a backup that was of no use for replace_ms gives its place
 * to the next server that answers. To the queue, that is a server that restarted empty: it is claimed, compared, filled
 * and marked. What the lost one holds is known, so the markers say that it was replaced (marker.h), and it is not
 * believed when it comes back as it was. While it may hold messages that were not read, it is waited for.
 *
 * A server that went on by itself, without the knowledge of this gateway, is owed its place: it gets it when the other
 * backup is in sync, and is united as one that came back late.
 *
 * A gateway that starts, or watches, gives each place the server that the markers name (choice.h).
 */
#pragma once

#include "smtpproxy/queue/backup/backup.h"
#include "smtpproxy/queue/markers/choice.h"

struct queue;

/* The servers of the file: `backups`, then `spares`. Others may read @count, @confs, @probes and @owed; queue.c shifts
 * @useful_ms by the time in which this process did not run. */
struct spares {
	struct backup probes[SERVERS_MAX];
	const struct backup_conf *confs[SERVERS_MAX];
	unsigned count;             /* servers of the file */
	unsigned at[BACKUPS];       /* the server of each place */
	int64_t moved_ms[BACKUPS];  /* when it got that place; 0: at the start */
	int64_t useful_ms[BACKUPS]; /* when it was of use last */
	unsigned owed; /* a bit for each server that may hold messages that no other has, and has no place */
};

void spares_begin(struct queue *q);
void spares_tick(struct queue *q, int64_t now_ms);

/* Of the servers of the file: the backup of its place, or its probe. */
const struct backup *spares_server(const struct queue *q, unsigned server);

/* LOOKING, WATCHING: true: a place gets another server, or its server has not had the time to answer yet. */
bool spares_choose(struct queue *q);
/* As choice_decide(), for the servers that the places have. */
enum recovery_step spares_decide(const struct queue *q, enum recovery_trust trust, unsigned *mask);
/* ACTIVE: look which servers are owed a place. */
void spares_note_owed(struct queue *q);
