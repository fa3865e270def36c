/* queue_spares.h: servers that take the place of a lost backup. Those of the file that no place uses are watched by
 * probes, which only look. Without spares in the file there is none of this.
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
#ifndef CSSL_SMTPPROXY_QUEUE_QUEUE_SPARES_H
#define CSSL_SMTPPROXY_QUEUE_QUEUE_SPARES_H

#include "net/address.h"
#include "smtpproxy/queue/backup.h"
#include "smtpproxy/queue/choice.h"

struct queue;

struct spares {
	struct backup_shared shared; /* of the probes */
	struct backup probes[SERVERS_MAX];
	const struct backup_conf *confs[SERVERS_MAX];
	unsigned count;             /* servers of the file */
	unsigned at[BACKUPS];       /* the server of each place */
	int64_t moved_ms[BACKUPS];  /* when it got that place; 0: at the start */
	int64_t useful_ms[BACKUPS]; /* when it was of use last */
	unsigned owed; /* a bit for each server that may hold messages that no other has, and has no place */
};

/* 0 or CSSL_E_NO_MEMORY. */
int queue_spares_create(struct queue *q);
int queue_spares_stop(struct queue *q); /* 1: all links are closed. Call it until then. */
void queue_spares_tick(struct queue *q, int64_t now_ms);
/* This process was stopped for so long. */
void queue_spares_forgive(struct queue *q, int64_t ms);

/* The servers of the file. Without spares: the backups. */
unsigned queue_servers(const struct queue *q);
const struct backup *queue_server(const struct queue *q, unsigned server);
const char *queue_server_name(const struct queue *q, unsigned server, char out[static ADDRESS_TEXT_MAX]);
int queue_any_server_is_away(const struct queue *q);

/* LOOKING, WATCHING: 1: a place gets another server, or its server has not had the time to answer yet. */
int queue_spares_choose(struct queue *q);
/* As recovery_decide(), for the servers that the places have. */
enum recovery_step queue_spares_decide(struct queue *q, enum recovery_trust trust, unsigned *mask);
/* ACTIVE: look which servers are owed a place. */
void queue_spares_note_owed(struct queue *q);
/* 1: a server without a place may have messages that are in no backup. */
int queue_spares_any_owed(const struct queue *q);
/* 1: @b does not hold what its place waits for, and another server may. */
int queue_spares_waits(const struct queue *q, const struct backup *b);

#endif
