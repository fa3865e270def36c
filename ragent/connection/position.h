/* position.h: where a connection stands, as RAgent committed it: the authority on sequence numbers. Two different
 * ciphertexts for one key and nonce cannot be accepted because only what is counted here is accepted, and the next
 * owner starts exactly behind it. Pure.
 *
 * Client side: up to where records are consumed, and up to where all was answered: the checkpoint, from which on an
 * agent that takes over asks again. Server side: what was committed, that is parsed whole and queued to the client. The
 * write sequence is the start value from KEPT or HANDED_OFF plus the records committed in this generation.
 */
#ifndef CSSL_RAGENT_POSITION_H
#define CSSL_RAGENT_POSITION_H

#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"

/* Sequence numbers are only known once the handshake has ended: OpenSSL made the records before. */
enum position_stage { POSITION_HANDSHAKE, POSITION_LIVE };

/* Since the last checkpoint. */
enum position_response { POSITION_AT_CHECKPOINT, POSITION_NOTHING_DELIVERED, POSITION_PARTLY_DELIVERED };

/* How far the client's records are consumed. */
struct position_mark {
	uint64_t client_records;
	uint64_t read_sequence; /* of the next one */
	uint32_t read_generation;
	uint32_t offset;     /* bytes of the next one that are consumed too */
	uint8_t read_closed; /* the client's close_notify is among them, as far as owners told */
};

/* Embedded; zero is a connection's start, but for the response: position_init(). */
struct position {
	uint64_t client_records; /* these as in position_mark: where it is now */
	uint64_t read_sequence;
	uint32_t read_generation;
	uint32_t offset;
	struct position_mark checkpoint;
	uint64_t server_records;
	uint64_t write_sequence;
	uint32_t write_generation;
	uint8_t read_closed;
	uint8_t stage;    /* enum position_stage */
	uint8_t response; /* enum position_response */
	uint64_t response_records;
	uint64_t response_bytes;
};

void position_init(struct position *p);

/* A DATA frame of @records whole records and @len bytes is queued to the client. 0, or CSSL_E_RANGE: the flags cannot
 * be true (a KeyUpdate frame with several records or before the end of the handshake), or a sequence would wrap. */
int position_commit(struct position *p, uint8_t flags, unsigned records, size_t len);

/* CONSUMED. 0, or CSSL_E_RANGE: it goes backward. @flags: FRAME_CHECKPOINT. */
int position_consume(struct position *p, const struct frame_consumed *c, uint8_t flags);

/* KEPT or HANDED_OFF: the owner's own view. Begins the live stage, or must agree with what was committed. 0, or
 * CSSL_E_MISMATCH: the owner and RAgent disagree about the records between them; nothing changed. */
struct position_claim {
	uint64_t client_records, read_sequence, server_records, write_sequence;
	uint32_t read_generation, write_generation, offset;
	uint8_t read_closed;
	enum { CLAIM_AWAY_FROM_CHECKPOINT, CLAIM_AT_CHECKPOINT } checkpoint;
};
int position_claim(struct position *p, const struct position_claim *c);

/* May a successor of a lost owner begin at the checkpoint, with the client's records from number @first_kept on still
 * kept? Not when the read generation changed since: no sealed copy goes back behind a KeyUpdate. 1 or 0. */
int position_replays_from(const struct position *p, uint64_t first_kept);
/* It does: what was consumed since counts as unconsumed again. */
void position_return(struct position *p);

/* Have the commits reached these generations? 1 or 0. */
int position_reached(const struct position *p, uint32_t read_generation, uint32_t write_generation);

#endif
