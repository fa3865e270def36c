/* queue_stats.h: the counts of the queue as plain values, for the control API and /metrics. */
#pragma once

#include "smtpproxy/queue/backup/backup_stats.h"

#define QUEUE_SPARES_MAX 4u

/* A server of the file that no place uses. */
struct queue_spare_stats {
	enum backup_state state; /* AWAY, or SEEN: it answers */
	char address[QUEUE_ADDRESS_MAX];
};

enum queue_state {
	QUEUE_LOOKING,  /* asks the backups what they hold */
	QUEUE_WATCHING, /* a standby: another gateway owns the queue */
	QUEUE_CLAIMING, /* takes it over */
	QUEUE_READING,  /* reads it back */
	QUEUE_ACTIVE,
	QUEUE_FLUSHING, /* an orderly stop: the backups still have to answer, so that no delivery is repeated */
	QUEUE_DEPOSED,  /* another gateway took it over: this one accepts and delivers nothing more */
	QUEUE_STOPPING,
};

struct queue_stats {
	enum queue_state state;
	struct queue_backup_stats backups[2];
	struct queue_spare_stats spares[QUEUE_SPARES_MAX];
	unsigned spare_count;
	uint64_t backups_replaced; /* since the start, by rule */
	uint64_t epoch, version;
	unsigned in_sync;                    /* backups that have all */
	uint64_t messages, bytes;            /* in memory; sealed bytes */
	uint64_t memory, memory_max;         /* of all items; UINT64_MAX: no bound */
	uint64_t unstored, unstored_bytes;   /* their senders wait */
	uint64_t stored, refused, delivered; /* since the start */
	uint64_t recovered, unreadable;      /* read back; could not be opened */
	uint64_t opaque;                     /* of the latter, items that are kept as they are */
	uint64_t recovery_ms;                /* of the start: from the claim until it accepted */
	uint64_t decided, orders;
	uint64_t graves;            /* ids of deleted messages that a server which is apart may still have */
	uint64_t decided_forgotten; /* before their time, since the start */
	uint64_t orders_unstored;   /* that a restart could forget: not every backup has them */
	uint64_t orders_refused;    /* since the start, by backups whose memory was full */
	uint64_t deletes_unconfirmed;
	uint64_t states_unconfirmed; /* of messages, with who has them already */
	int64_t lease_left_ms;       /* negative or 0: nothing may be delivered */
};

const char *queue_state_name(enum queue_state s);
