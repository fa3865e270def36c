/* backup_stats.h: the states of a backup and of its paths, and their counts as plain values. A part of its own, because
 * the control API and /metrics show them and need nothing else of a backup.
 */
#pragma once

#include <stdint.h>

#define BACKUP_PATHS      2u
#define QUEUE_ADDRESS_MAX 128u

enum backup_state {
	BACKUP_AWAY,      /* no path answers */
	BACKUP_SEEN,      /* known, not ours */
	BACKUP_CLAIMING,  /* the claim was sent */
	BACKUP_CLAIMED,   /* ours; read, or about to be compared */
	BACKUP_COMPARING, /* gets deletes and new states; is read to find out which items it lacks */
	BACKUP_FILLING,   /* the same, and gets all that it lacks */
	BACKUP_MARKING,   /* has got everything; its marker is being written */
	BACKUP_IN_SYNC,
	BACKUP_REFUSED, /* another gateway owns it */
};

enum path_state {
	PATH_DOWN,
	PATH_CONNECTING,
	PATH_STANDBY, /* answers heartbeats */
	PATH_ACTIVE,  /* carries the requests */
};

struct queue_path_stats {
	enum path_state state;
	uint64_t connects, lost, timeouts, switches; /* @switches: it became the active one after another */
	int64_t answer_ms;                           /* of the last heartbeat */
};

struct queue_backup_stats {
	enum backup_state state;
	int has_all; /* 1: in sync, and reached */
	struct queue_path_stats paths[BACKUP_PATHS];
	uint64_t puts, replaces, deletes; /* answered */
	uint64_t refused;                 /* puts, because its memory was full */
	uint64_t calls;                   /* requests that carried them */
	uint64_t repeated;                /* sent again after a switch of paths */
	uint64_t fills, given_up;
	uint64_t blocks;     /* that were read */
	uint64_t unanswered; /* changes that are sent or wait */
	unsigned path_count;
	char address[QUEUE_ADDRESS_MAX]; /* of its first path */
};

const char *backup_state_name(enum backup_state s);
