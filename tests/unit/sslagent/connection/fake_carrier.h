/* fake_carrier.h: RAgent's half of one connection, without RAgent and links: carriers, one for each ownership, and what
 * stands behind them all: the client's records until they are consumed, the counts of what was committed (RAgent's own
 * position.h and copies.h judge what an agent says), the bytes that wait for the client. A takeover begins at the last
 * checkpoint, as RAgent's does.
 *
 * Nothing happens within a carrier's call but writing it down; the test carries on with the fake_ragent_ calls.
 */
#pragma once

#include "ragent/connection/ownership/copies.h"
#include "ragent/connection/ownership/position.h"
#include "sslagent/connection/connection.h"
#include "sslagent/service/sealed_note.h"

#define FAKE_OWNERSHIPS_MAX 320u
#define FAKE_QUEUE_MAX      (8u << 20)
#define FAKE_PAST_MAX       (128u << 10)

struct fake_ragent;

/* One ownership. */
struct fake_carrier {
	struct carrier carrier; /* first */
	struct fake_ragent *ragent;
	struct connection *connection; /* NULL: not begun, or it ended or refused */
	uint64_t base;                 /* bytes the client had taken when it began */
	uint64_t received, told;       /* DATA bytes: as connection_accepted() counts them */
	unsigned said[256];            /* frames by type */
	uint8_t data_flags;            /* of the last DATA */
	uint8_t consumed_flags;        /* of the last CONSUMED */
	uint8_t fin_flags;
	enum end_reason end_reason;
	enum carrier_end end_how;
	Cssl__LinkRefused__Reason refused;
	Cssl__LinkAdopted__Source source;
	/* of the last KEPT or HANDED_OFF */
	Cssl__BackendHalf backend;
	uint8_t at_checkpoint, read_closed, write_closed;
};

struct fake_ragent {
	struct connection_id id;
	const char *listener;
	struct position position;
	struct copies copies;
	struct fake_carrier owners[FAKE_OWNERSHIPS_MAX];
	unsigned owner_count;
	struct fake_carrier *current; /* the last one; what others say is a mistake here */
	struct fake_carrier *frozen;  /* said HANDED_OFF */
	uint32_t window;
	uint32_t offset; /* to be told in the next SSL_ID: plaintext bytes of the first kept record the backend has */
	/* the client's records that are not consumed */
	uint8_t *kept;
	size_t kept_len, sent_len;
	uint64_t first_record, kept_records;
	/* and those in front of them that are, since the checkpoint, unless they became too many */
	uint8_t *past;
	size_t past_len;
	uint64_t exposed; /* records below this number had reached an owner that was lost */
	/* to be told in the SSL_ID of a takeover */
	Cssl__Fate fate;
	enum { RESPONSE_AS_IT_IS, RESPONSE_FORCED } response;
	Cssl__ResponseState forced;
	uint8_t download[SEALED_NOTE_MAX]; /* of the last DOWNLOAD since the checkpoint */
	size_t download_len;
	/* the server's that wait for the client */
	uint8_t *queue;
	size_t queue_len;
	uint64_t queued, drained;
	size_t frame_cap;
	enum { ROOM, NO_ROOM } room; /* does reserve() give any? */
	uint8_t frame[FRAME_PAYLOAD_MAX];
};

void fake_ragent_start(struct fake_ragent *r, const char *listener, uint32_t window);
/* Forgets the current owner (CLOSE). */
void fake_ragent_stop(struct fake_ragent *r);

/* Endpoints of a client; cssl__endpoints__free_unpacked(). */
Cssl__Endpoints *fake_endpoints(void);

/* OPEN at that worker. 0: it is out of memory. */
int fake_ragent_open(struct fake_ragent *r, struct connection_home *home, Cssl__LinkOpen__Disposition disposition);

/* Client records came: whole ones. */
void fake_ragent_keep(struct fake_ragent *r, const uint8_t *records, size_t len);
/* Whole records, as a carrier gives them. */
void fake_records(struct connection *c, uint8_t *bytes, size_t len);
/* Give the owner @max bytes of what it has not got, whole records (0: one record). Returns bytes. */
size_t fake_ragent_forward(struct fake_ragent *r, size_t max);
/* The client takes up to @max bytes; returns where they are, *len how many. Valid until the next call. */
const uint8_t *fake_ragent_drain(struct fake_ragent *r, size_t max, size_t *len);
/* ACCEPTED, as things stand. */
void fake_ragent_accept(struct fake_ragent *r);

/* MOVE to the agent of that name. */
void fake_ragent_ask_move(struct fake_ragent *r, const char *target);
/* The same with time for a checkpoint. */
void fake_ragent_ask_move_within(struct fake_ragent *r, const char *target, uint32_t deadline_ms);
/* MOVE that lets it rest. */
void fake_ragent_ask_rest(struct fake_ragent *r);
/* DETACH of the frozen owner. */
void fake_ragent_detach(struct fake_ragent *r);
/* The owner is lost: its process, or its link. It says nothing any more. */
void fake_ragent_lose(struct fake_ragent *r);
/* SSL_ID at that worker: 1 adopted, 0 refused (and nothing of it is left there). After a HANDED_OFF the frozen owner
 * is detached when another has adopted. */
int fake_ragent_adopt(struct fake_ragent *r, struct connection_home *home, Cssl__Cause cause);

/* The connection at the current owner; fails the test when it has ended. */
struct connection *fake_owner(struct fake_ragent *r);
unsigned fake_said(const struct fake_ragent *r, enum frame_type type); /* by the current owner */
