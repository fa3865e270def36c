/* preamble.h: what an agent says to a client of service smtp in clear: the dialogue of smtp/preamble.h up to STARTTLS,
 * and, where the listener's policy is `offer` and mail begins, this mail. No TLS object exists, nothing is sealed, and
 * nobody owns anything: RFC 3207 4.2 drops all of it at STARTTLS.
 *
 *     TALKING --STARTTLS--> ENDED
 *        |                    ^
 *        +--MAIL--> RELAYING -+
 *
 * Its worker's thread only. It has no buffer of its own for input: what it cannot use yet stays with its carrier.
 */
#ifndef CSSL_SSLAGENT_PREAMBLE_H
#define CSSL_SSLAGENT_PREAMBLE_H

#include "conf/conf.h"
#include "net/endpoints.h"
#include "net/timer.h"
#include "proto/end_reason.h"
#include "sslagent/backend/backend.h"

struct preamble;
struct preamble_carrier;

/* How the client's TCP connection ends. */
enum preamble_end { PREAMBLE_ORDERLY, PREAMBLE_ABORT };

/* Is nothing of a reply missing behind these words, and none due? */
enum preamble_words { PREAMBLE_PART, PREAMBLE_WHOLE };

struct preamble_carrier_ops {
	void (*say)(struct preamble_carrier *c, const void *words, size_t len, enum preamble_words what);
	/* So many of the client's bytes were read in all. */
	void (*taken)(struct preamble_carrier *c, uint64_t bytes);
	/* There is room for input again: offer what was not used. */
	void (*wants)(struct preamble_carrier *c);
	/* STARTTLS was said, and @reply answers it, if nobody sent more than @taken bytes. The preamble is over and
	 * calls nothing else. */
	void (*starttls)(struct preamble_carrier *c, const void *reply, size_t len, uint64_t taken);
	/* Mail began in clear. */
	void (*relayed)(struct preamble_carrier *c);
	/* It is over for this agent; it calls nothing else. */
	void (*end)(struct preamble_carrier *c, enum end_reason reason, enum preamble_end how);
};

/* Embedded in its holder. */
struct preamble_carrier {
	const struct preamble_carrier_ops *ops;
};

/* What the preambles of one worker share. Embedded. */
struct preamble_home {
	/* Set before preamble_home_open(); all outlive it. */
	struct worker *worker;
	const struct conf *conf;
	const struct backend_home *backends;

	struct preamble_rules *rules; /* by listener */
	uint32_t window_len;
	uint32_t count, max;     /* 0: any */
	struct preamble *buried; /* ended in this turn, freed at its end */
	struct turn_end burial;
};
/* 0 or CSSL_E_NO_MEMORY; either way preamble_home_release() is due. */
int preamble_home_open(struct preamble_home *home);
/* After the thread ended. */
void preamble_home_release(struct preamble_home *home);

/* The banner is said at once. NULL: too many, or out of memory. Sane @endpoints are copied. */
struct preamble *preamble_open(struct preamble_home *home, struct preamble_carrier *carrier,
	const struct conf_listener *listener, const struct connection_id *id, const Cssl__Endpoints *endpoints);
/* Bytes of the client; returns how many were used. */
size_t preamble_read(struct preamble *p, const uint8_t *data, size_t len);
/* The client took so many bytes in all. */
void preamble_drained(struct preamble *p, uint64_t bytes);
/* Behind all that it said, the client ended. */
void preamble_fin(struct preamble *p);
/* Say 421 as soon as a reply may stand, and end. */
void preamble_finish(struct preamble *p, enum end_reason reason);
/* Its carrier is gone. */
void preamble_forget(struct preamble *p);

#endif
