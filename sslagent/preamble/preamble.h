/* preamble.h: the dialogue in clear of an agent with a client of service smtp: that of smtp/preamble.h up to STARTTLS,
 * and, where the listener's policy is `offer` and mail begins, this mail. No TLS object exists, nothing is sealed, and
 * nobody owns anything: RFC 3207 4.2 drops all of it at STARTTLS.
 *
 *     TALKING --STARTTLS--> ENDED
 *        |                    ^
 *        +--MAIL--> RELAYING -+
 *
 * Its worker's thread only. It has no buffer of its own for input: what it cannot use yet stays with its carrier.
 */
#pragma once

#include "conf/conf.h"
#include "proto/end_reason.h"
#include "proto/ids.h"
#include "proto/link.pb-c.h"
#include "sslagent/backend/backend.h"

struct handshake_limit;
struct preamble;
struct preamble_carrier;

/* How the client's TCP connection ends. */
enum preamble_end { PREAMBLE_ORDERLY, PREAMBLE_ABORT };

/* Does a reply end here, and is no other due? */
enum preamble_words { PREAMBLE_PART, PREAMBLE_WHOLE };

struct preamble_carrier_ops {
	void (*say)(struct preamble_carrier *c, const void *words, size_t len, enum preamble_words what);
	/* The preamble has read @bytes of the client's bytes in all. */
	void (*taken)(struct preamble_carrier *c, uint64_t bytes);
	/* There is room for input again: offer the unused bytes again. */
	void (*wants)(struct preamble_carrier *c);
	/* The client sent STARTTLS. @reply answers it, unless the client sent more than @taken bytes. The preamble
	 * is over and makes no more calls. */
	void (*starttls)(struct preamble_carrier *c, const void *reply, size_t len, uint64_t taken);
	/* The client began a mail in clear. */
	void (*relayed)(struct preamble_carrier *c);
	/* The preamble is over; it makes no more calls. */
	void (*end)(struct preamble_carrier *c, enum end_reason reason, enum preamble_end how);
};

/* Embedded in its user. */
struct preamble_carrier {
	const struct preamble_carrier_ops *ops;
};

/* The preambles of one worker share this. Embedded. */
struct preamble_home {
	/* Set before preamble_home_open(). All of these outlive it. */
	struct worker *worker;
	const struct conf *conf;
	struct backend_home *backends;

	struct preamble_rules *rules; /* by listener */
	uint32_t window_len;
	uint32_t count;                 /* of preambles */
	uint32_t talking, max;          /* how many of them are TALKING, and may; @max 0: no limit */
	struct handshake_limit *direct; /* the limit of those that come without RAgent, which has limits of its own */
	struct preamble *buried;        /* ended in this turn, freed at its end */
	struct turn_end burial;
};
/* 0 or CSSL_E_NO_MEMORY. In both cases preamble_home_release() has to follow. */
int preamble_home_open(struct preamble_home *home);
/* Call it after the thread ended. */
void preamble_home_release(struct preamble_home *home);

/* The banner is sent at once. NULL: too many preambles, or out of memory. @endpoints are copied if they are valid. */
struct preamble *preamble_open(struct preamble_home *home, struct preamble_carrier *carrier,
	const struct conf_listener *listener, const struct connection_id *id, const Cssl__Endpoints *endpoints);
/* Give it bytes of the client. Returns how many it used. */
size_t preamble_read(struct preamble *p, const uint8_t *data, size_t len);
/* The client has received @bytes in all. */
void preamble_drained(struct preamble *p, uint64_t bytes);
/* The client ended, after all bytes that it sent. */
void preamble_fin(struct preamble *p);
/* Send 421 as soon as a reply may come, and end. */
void preamble_finish(struct preamble *p, enum end_reason reason);
/* Nobody hears it for now: it reads no backend, and gives it nothing. What it says all the same, its carrier keeps. */
void preamble_pause(struct preamble *p);
void preamble_go_on(struct preamble *p);
/* Its carrier is gone. */
void preamble_forget(struct preamble *p);
