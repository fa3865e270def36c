/* frame.h: the frames that RAgent and an agent send each other on a link. doc/words.md explains the words.
 *
 * After its opening (opening.h), a link carries frames. A sealed link carries them in batches (batch.h).
 * Every frame is an 8-byte header, big endian, and a payload:
 *
 *     0        4      5       6         8
 *     | stream | type | flags | len     | payload (len bytes)
 *
 * Stream 0 is the link itself. All counts are absolute, from the connection's first byte on; all lengths are bytes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FRAME_HEADER_LEN  8u
#define FRAME_PAYLOAD_MAX 65528u /* header + payload fit one 64 KiB batch; three maximal TLS records fit one frame */

/* X(name, value, payload): payload is FIXED (see the structs below), RECORDS, EMPTY, or the message of link.proto. */
#define FRAME_TYPES(X)                                                                                                 \
	/* both ways */                                                                                                \
	X(DATA, 0x01, "whole TLS records, one or more, verbatim")                                                      \
	X(FIN, 0x02, "empty; this side will send no more DATA on the stream")                                          \
	X(PING, 0x03, "u64 token (stream 0)")                                                                          \
	X(PONG, 0x04, "u64 token (stream 0)")                                                                          \
	/* RAgent -> agent */                                                                                          \
	X(OPEN, 0x10, "LinkOpen: a new connection; the agent makes the handshake under epoch 1")                       \
	X(SSL_ID, 0x11, "LinkSslId: adopt this connection (the paper's MSG_SSL_ID)")                                   \
	X(ACCEPTED, 0x12, "struct frame_accepted: commit acknowledgement and credit")                                  \
	X(CLOSE, 0x13, "u8 enum end_reason: the client has gone, or END came; the agent forgets the stream")           \
	X(DETACH, 0x14,                                                                                                \
		"empty: another agent has adopted; the agent wipes the stream's frozen state and does not answer")     \
	X(VIOLATION, 0x15,                                                                                             \
		"struct frame_violation: the client broke the record layer; the agent sends the alert and ends")       \
	X(MOVE, 0x16, "LinkMove: the agent freezes at the next record boundary, for another agent")                    \
	X(REQUEST, 0x17, "LinkRequest (stream 0): counters, revoke, rotate, sessions")                                 \
	X(FINISH, 0x18,                                                                                                \
		"u8 enum end_reason: the agent sends close_notify at a checkpoint, else internal_error, and ends. "    \
		"It goes on if the reason is IDLE_TIMEOUT and it awaits a verdict of the backend")                     \
	X(PREAMBLE, 0x19, "LinkPreamble: a client that begins in clear; the agent speaks with it until STARTTLS")      \
	X(PROOF, 0x1a, "32 bytes (stream 0): a later link that shows the same comes from RAgent's next process")       \
	X(REATTACH, 0x1b, "struct frame_reattach: a stream of a link that is over goes on as this stream")             \
	/* agent -> RAgent */                                                                                          \
	X(KEPT, 0x20, "LinkLive: the handshake has ended, this agent is the owner")                                    \
	X(HANDED_OFF, 0x21, "LinkLive: frozen; another agent may adopt")                                               \
	X(ADOPTED, 0x22, "LinkAdopted: answer to SSL_ID, this agent is the owner")                                     \
	X(REFUSED, 0x23, "LinkRefused: answer to OPEN, SSL_ID or MOVE; nothing has changed")                           \
	X(CONSUMED, 0x24, "struct frame_consumed: records that the agent has used up; maybe a checkpoint")             \
	X(COPY, 0x25, "LinkCopy: a new sealed copy; a later frame makes it current")                                   \
	X(END, 0x26, "u8 enum end_reason: the agent has forgotten the stream; a flag says how RAgent closes")          \
	X(RESPONSE, 0x27, "LinkResponse (stream 0): answer to REQUEST")                                                \
	X(LOAD, 0x28, "LinkLoad (stream 0): how busy the agent is, after each PONG")                                   \
	X(LEAVING, 0x29,                                                                                               \
		"empty (stream 0): the agent leaves; RAgent opens nothing there and moves its connections away")       \
	X(DOWNLOAD, 0x2a, "LinkDownload: a note (link.proto): how another agent goes on with an answer or with mail")  \
	X(TAKEN, 0x2b, "u64 bytes of the client in clear that the agent has read in all: credit")                      \
	X(RELAYED, 0x2c, "empty: mail goes on in clear, and no STARTTLS follows any more")                             \
	X(REATTACHED, 0x2d, "struct frame_reattached: answer to REATTACH; the held frames follow")

enum frame_type {
#define X(name, value, payload) FRAME_##name = value,
	FRAME_TYPES(X)
#undef X
};

/* Flags. A flag about a record is in the header of the frame that carries the record, so that RAgent commits both
 * together. */
enum frame_flag {
	FRAME_CHECKPOINT =
		1 << 0, /* DATA, CONSUMED from the agent: all that was consumed up to this frame is answered */
	FRAME_RESPONSE_BYTES = 1 << 1,           /* DATA from the agent: its records carry bytes of a response */
	FRAME_LAST_OF_WRITE_GENERATION = 1 << 2, /* DATA from the agent: its one record is KeyUpdate */
	FRAME_RECORDS_FOLLOW = 1 << 3, /* DATA from the agent: the plaintext ends with this frame (STARTTLS 220) */
	FRAME_PLAINTEXT = 1 << 4,      /* DATA both ways: plaintext before STARTTLS instead of TLS records */
	FRAME_AUTHENTICATED = 1 << 5, /* FIN from the agent: it sent close_notify before. Without the flag it did not */
	FRAME_LAST_RECORD = 1 << 7, /* DATA from the agent: its last record is the last of the connection, close_notify
				       or a fatal alert */
	FRAME_REPLY_COMPLETE = FRAME_CHECKPOINT, /* DATA in clear from the agent: it ends with a whole reply, and no
						    other reply is due */
	FRAME_ABORT = 1 << 6, /* END: reset the client's TCP connection. Without the flag, close it in order */
	FRAME_CLIENT_WAITS = FRAME_AUTHENTICATED, /* CONSUMED: the agent opens no
						     record for a while. RAgent reads nothing more of the client until
						     the next CONSUMED without the flag, the end of the ownership, or
						     another link or process */
};

/* A preamble stream has no owner and no epoch. On it a client and an agent speak in clear (RFC 3207), and RAgent passes
 * DATA frames flagged PLAINTEXT without looking into them. RAgent sends at most FRAME_PREAMBLE_WINDOW bytes beyond
 * those of TAKEN (after RELAYED: the cluster's window). The agent sends at most as many beyond those of ACCEPTED.
 *
 * The stream ends with the DATA frame flagged RECORDS_FOLLOW. Before it, TAKEN says how many bytes of the client the
 * agent had read when it made that reply. If RAgent has received more bytes of the client, somebody injected them:
 * RAgent does not send the reply, and resets the client.
 *
 * It may outlive its link as other streams do (below), under epoch 0. The bytes of the client count as its records. The
 * DATA frame that ends it is held, and answered by CLOSE, as END is. */
#define FRAME_PREAMBLE_WINDOW 4096u

/* CONSUMED: the agent gave the first @client_records records to the backend (or the handshake or the record layer used
 * them), and @offset plaintext bytes of the next record. @read_sequence and @read_generation belong to that next
 * record. */
struct frame_consumed {
	uint64_t client_records;
	uint64_t read_sequence;
	uint32_t read_generation;
	uint32_t offset;
};
#define FRAME_CONSUMED_LEN 24u

/* ACCEPTED: RAgent has committed @server_records whole records (those of the handshake count), up to @write_generation.
 * It has written @drained bytes of this stream's DATA payload to the client's TCP connection. On a link whose streams
 * outlive it, it also has the agent's frames up to number @received where its next process finds them; 0: none, or it
 * does not say so. */
struct frame_accepted {
	uint64_t server_records;
	uint64_t drained;
	uint32_t write_generation;
	uint64_t received;
};
#define FRAME_ACCEPTED_LEN 20u
#define FRAME_ACCEPTED_MAX 28u /* with @received */

/* VIOLATION: the offending record header as RAgent saw it. */
struct frame_violation {
	uint8_t type;
	uint16_t version;
	uint16_t length;
};
#define FRAME_VIOLATION_LEN 5u

/* Streams that outlive their link (RAgent said PROOF before they began). Both sides
 * number the frames of the agent on a stream from 1. The agent holds them until ACCEPTED says that the frame was
 * received and its DATA bytes are drained. When the link breaks, because RAgent died or the network was cut, the stream
 * waits. On a new link RAgent, or its next process, says REATTACH: the agent answers REATTACHED, and sends the held
 * frames again, the same bytes; it seals nothing anew. RAgent sends the client records that the agent did not get. A
 * next process with many connections repeats PROOF until it has asked for all streams: so long they wait on.
 *
 * END is held like other frames, and outlives its connection: if it were lost with RAgent, so would be the records
 * before it. RAgent answers CLOSE when its next process does not need them any more. */
#define FRAME_PROOF_LEN 32u

/* REATTACH: the stream of this connection and epoch, as RAgent knows it: it had this number on its link. */
struct frame_reattach {
	uint8_t connection_id[16];
	uint32_t stream;
	uint32_t epoch;
};
#define FRAME_REATTACH_LEN 24u

/* REATTACHED: the next frame is the one with number @frame, and @bytes of DATA came before it on this stream. The agent
 * has the first @client_records of the connection. */
struct frame_reattached {
	uint64_t frame;
	uint64_t bytes;
	uint64_t client_records;
};
#define FRAME_REATTACHED_LEN 24u

/* One parsed frame; @payload points into the caller's input. */
struct frame {
	uint32_t stream;
	uint8_t type;
	uint8_t flags;
	uint16_t len;
	const uint8_t *payload;
};

#define FRAME_INCOMPLETE 1

/* Parse one frame at the head of @in. 0: @out is filled and takes FRAME_HEADER_LEN + out->len bytes of @in.
 * FRAME_INCOMPLETE: more input is needed. Negative: the link must end. CSSL_E_TYPE: unknown type. CSSL_E_RANGE: stream
 * 0 where a stream is needed, or the reverse; or a flag that this type does not have. CSSL_E_TRUNCATED,
 * CSSL_E_TOO_LONG: a length that this type cannot have. A bad header is refused before its payload has come. */
int frame_parse(const uint8_t *in, size_t len, struct frame *out);

/* Write a header of FRAME_HEADER_LEN bytes. */
void frame_header_write(
	uint8_t out[static FRAME_HEADER_LEN], uint32_t stream, enum frame_type type, uint8_t flags, uint16_t len);

/* Fixed payloads. The reading side returns 0 or a negative error for a wrong length. Where the payload is one number,
 * no function is needed: frame_parse() has checked its length. */
void frame_consumed_write(uint8_t out[static FRAME_CONSUMED_LEN], const struct frame_consumed *c);
int frame_consumed_read(const struct frame *f, struct frame_consumed *out);
/* Returns the length: FRAME_ACCEPTED_LEN without @received. */
size_t frame_accepted_write(uint8_t out[static FRAME_ACCEPTED_MAX], const struct frame_accepted *a);
int frame_accepted_read(const struct frame *f, struct frame_accepted *out);
void frame_violation_write(uint8_t out[static FRAME_VIOLATION_LEN], const struct frame_violation *v);
int frame_violation_read(const struct frame *f, struct frame_violation *out);
void frame_reattach_write(uint8_t out[static FRAME_REATTACH_LEN], const struct frame_reattach *r);
int frame_reattach_read(const struct frame *f, struct frame_reattach *out);
void frame_reattached_write(uint8_t out[static FRAME_REATTACHED_LEN], const struct frame_reattached *r);
int frame_reattached_read(const struct frame *f, struct frame_reattached *out);

/* For logs: "DATA"; "?" for an unknown type. */
const char *frame_type_name(uint8_t type);
