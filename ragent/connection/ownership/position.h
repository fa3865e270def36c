/* position.h: the position of a connection, as RAgent committed it. RAgent is the authority on sequence numbers. It
 * accepts only records that are counted here, and the next owner starts exactly behind them. So RAgent never accepts
 * two different ciphertexts for one key and nonce. Pure.
 *
 * Client side: the last consumed record, and the checkpoint: up to here all is answered, and from here an agent that
 * takes over asks again. Server side: committed records, that is, parsed completely and queued to the client. The
 * write sequence is the start value from KEPT or HANDED_OFF plus the records committed in this generation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"
#include "proto/link.pb-c.h"

/* Sequence numbers are known only after the handshake, because OpenSSL makes the records before. */
enum position_stage { POSITION_HANDSHAKE, POSITION_LIVE };

/* How much of the response the client has got since the last checkpoint. */
enum position_response { POSITION_AT_CHECKPOINT, POSITION_NOTHING_DELIVERED, POSITION_PARTLY_DELIVERED };

/* A mark in the client's records: all before it are consumed. */
struct position_mark {
	uint64_t client_records;
	uint64_t read_sequence; /* of the next record */
	uint32_t read_generation;
	uint16_t offset;     /* so many bytes of the next record are consumed too */
	uint8_t read_closed; /* whether the client's close_notify is among them, as owners reported */
};

/* Embedded. Zero is the start of a connection, except for the response: position_init(). */
struct position {
	struct position_mark now, checkpoint;
	uint64_t server_records;
	uint64_t write_sequence;
	uint32_t write_generation;
	uint8_t stage;    /* enum position_stage */
	uint8_t response; /* enum position_response */
	uint64_t response_records;
	uint64_t response_bytes;
};

static inline void position_init(struct position *p)
{
	*p = (struct position){ .stage = POSITION_HANDSHAKE, .response = POSITION_NOTHING_DELIVERED };
}

/* A DATA frame of @records complete records and @len bytes is queued to the client. 0, or CSSL_E_RANGE: the flags
 * cannot be true (a KeyUpdate frame with several records or before the end of the handshake), or a sequence number
 * would wrap. */
int position_commit(struct position *p, uint8_t flags, unsigned records, size_t len);

/* A CONSUMED frame came. 0, or CSSL_E_RANGE: it goes backward. @flags: FRAME_CHECKPOINT. */
int position_consume(struct position *p, const struct frame_consumed *c, uint8_t flags);

/* KEPT or HANDED_OFF came, with the owner's own counts. It begins the live stage, or has to agree with the committed
 * records. 0; CSSL_E_TRUNCATED: @live has no position; CSSL_E_MISMATCH: owner and RAgent disagree about the records
 * between them. Then nothing changed. */
int position_claim(struct position *p, const Cssl__LinkLive *live);

/* May the successor of a lost owner begin at the checkpoint, if the client's records are kept from number
 * @first_kept on? Not if the read generation changed since then: no sealed copy goes back behind a KeyUpdate. */
static inline bool position_replays_from(const struct position *p, uint64_t first_kept)
{
	return first_kept == p->checkpoint.client_records && p->now.read_generation == p->checkpoint.read_generation;
}
/* The successor does so: records consumed since the checkpoint count as unconsumed again. */
static inline void position_return(struct position *p)
{
	p->now = p->checkpoint;
}

/* Have the commits reached these generations? */
static inline bool position_reached(const struct position *p, uint32_t read_generation, uint32_t write_generation)
{
	return p->now.read_generation >= read_generation && p->write_generation >= write_generation;
}
