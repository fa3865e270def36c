/* looking.h: how a gateway comes to own the queue. A part of its own, because until it claims, nothing is held and
 * nothing is lost: it may only be patient.
 */
#pragma once

#include "smtpproxy/queue/markers/marker.h"

struct queue;

/* LOOKING, WATCHING: how long each server was seen without a sign of life on any, and what it showed first. Only
 * looking.c writes it, and spares.c begins anew with another server. */
struct owner_watch {
	struct {
		uint64_t record; /* as seen last */
		int64_t asked_ms, silent_ms;
	} servers[BACKUPS];
	struct {
		uint64_t epoch, signs;
		int64_t since_ms; /* 0: not seen */
	} owners[BACKUPS];
};

/* What was claimed, and what it means. looking.c begins it, uniting.c goes on. Others may read it. */
struct recovery {
	int64_t began_ms; /* 0: it is over */
	/* a bit for each backup: its claim is not answered yet; it is not read yet; the recovery reads it */
	unsigned claims, reads, from;
	/* a bit for each server of which it was told that the queue waits for it: lost, and refusing */
	unsigned silent_told, refusing_told;
	uint64_t epoch;                 /* of its claims */
	uint64_t version;               /* the highest that the recovery saw */
	struct marker markers[BACKUPS]; /* of the backups that the recovery reads; all zero: not read */
};

/* LOOKING, WATCHING: claims every server that answers, if enough is known. In each state, returns whether a decision
 * about the servers may be made: they were asked just now, and after an order. Called at each sight and tick. */
bool looking_step(struct queue *q);
