/* frame.h: what RAgent and an SSLAgent say to each other on a link.
 *
 * The words, used everywhere in CSSL and nowhere with another meaning:
 *
 *   client       the TLS peer outside
 *   connection   one client TCP connection, owned by one RAgent for its whole life; random 128-bit connection id
 *   agent        an SSLAgent process
 *   link         one TCP or UNIX connection RAgent worker -> agent worker that carries many connections
 *   stream       a connection's place on a link during one ownership; 32 bits, given by RAgent, never reused on a link
 *   session      what a full handshake agreed on and a resumption reuses; a family is a session and all resumed from it
 *   SESS_OBJ     carries a session (resumption part), or a connection's live keys and sequence numbers (live part),
 *                or both
 *   generation   counts key changes (KeyUpdate) of a connection, per direction, from 0
 *   owner        the one agent allowed to seal for a connection
 *   epoch        number of an ownership, from 1; each ownership has the next one
 *   freeze       take the live part out (export); from then on this agent cannot seal for the connection
 *   move         any change of owner
 *   hand-off     the handshake agent's connection goes to its affinity agent (CSSL-SF)
 *   adopt        an agent becomes owner from a live part and sequence numbers
 *   drain        planned move of all of an agent's connections
 *   takeover     unplanned move of a lost agent's connections
 *   checkpoint   (client records consumed, byte offset into the next) up to which everything was answered
 *   rest         an idle connection at a checkpoint that occupies no agent
 *   backend      what stands behind and gets plaintext
 *   service      how an agent treats a listener's plaintext: tcp, http, smtp
 *
 * A link is, after its opening (opening.h), a sequence of frames; on a sealed link they travel in batches (batch.h).
 * Every frame is an 8-byte header, big endian, and a payload:
 *
 *     0        4      5       6         8
 *     | stream | type | flags | len     | payload (len bytes)
 *
 * Stream 0 is the link itself. All counts are absolute, from the connection's first byte on; all lengths are bytes.
 */
#ifndef CSSL_PROTO_FRAME_H
#define CSSL_PROTO_FRAME_H

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
	X(OPEN, 0x10, "LinkOpen: a new connection; the agent is to make the handshake under epoch 1")                  \
	X(SSL_ID, 0x11, "LinkSslId: adopt this connection (the paper's MSG_SSL_ID)")                                   \
	X(ACCEPTED, 0x12, "struct frame_accepted: commit acknowledgement and credit")                                  \
	X(CLOSE, 0x13, "u8 enum end_reason: the client is gone; forget the stream; no answer")                         \
	X(DETACH, 0x14, "empty: wipe the frozen state of this stream, its successor has adopted; no answer")           \
	X(VIOLATION, 0x15, "struct frame_violation: the client broke the record layer; say the alert and end")         \
	X(MOVE, 0x16, "LinkMove: freeze at the next record boundary and hand off towards an agent")                    \
	X(REQUEST, 0x17, "LinkRequest (stream 0): counters, revoke, rotate, drain, sessions")                          \
	X(FINISH, 0x18, "u8 enum end_reason: say close_notify at a checkpoint, else internal_error, and end")          \
	/* agent -> RAgent */                                                                                          \
	X(KEPT, 0x20, "LinkLive: the handshake ended, this agent is owner")                                            \
	X(HANDED_OFF, 0x21, "LinkLive: frozen; another agent may adopt")                                               \
	X(ADOPTED, 0x22, "LinkAdopted: answer to SSL_ID, this agent is owner")                                         \
	X(REFUSED, 0x23, "LinkRefused: answer to OPEN, SSL_ID or MOVE; nothing changed")                               \
	X(CONSUMED, 0x24, "struct frame_consumed: credit, acknowledgement and checkpoint mark in one")                 \
	X(COPY, 0x25, "LinkCopy: a fresh sealed copy, before the frame that makes it current")                         \
	X(END, 0x26, "u8 enum end_reason: the agent has forgotten the stream; flags say how the client ends")          \
	X(RESPONSE, 0x27, "LinkResponse (stream 0): answer to REQUEST")                                                \
	X(LOAD, 0x28, "LinkLoad (stream 0): how busy the agent is, after each PONG")                                   \
	X(LEAVING, 0x29, "empty (stream 0): give this agent nothing new, and take from it what it has")                \
	X(DOWNLOAD, 0x2a, "LinkDownload: how the answer that begins behind it can go on after a loss of its owner")

enum frame_type {
#define X(name, value, payload) FRAME_##name = value,
	FRAME_TYPES(X)
#undef X
};

/* Flags. What is true of a record rides in the header of the frame that carries it; RAgent commits both together. */
enum frame_flag {
	FRAME_CHECKPOINT = 1 << 0,     /* DATA, CONSUMED from the agent: after this frame all consumed was answered */
	FRAME_RESPONSE_BYTES = 1 << 1, /* DATA from the agent: its records carry bytes of a response */
	FRAME_LAST_OF_WRITE_GENERATION = 1 << 2, /* DATA from the agent: its one record is KeyUpdate */
	FRAME_RECORDS_FOLLOW = 1 << 3, /* DATA from the agent: plaintext ends here, TLS records follow (STARTTLS 220) */
	FRAME_PLAINTEXT = 1 << 4,      /* DATA both ways: not TLS records but the plaintext preamble (STARTTLS) */
	FRAME_AUTHENTICATED = 1 << 5,  /* FIN from the agent: close_notify went before; without it the FIN is bare */
	FRAME_LAST_RECORD =
		1 << 7, /* DATA from the agent: its last record, close_notify or a fatal alert, is the last of all */
	FRAME_ABORT = 1 << 6, /* END: reset the client's TCP connection; without it shut it down in order */
};

/* CONSUMED: the client records up to @client_records were handed to the backend (or were consumed by the handshake or
 * the record layer), and @offset plaintext bytes of the next. @read_sequence is that of the next record, under
 * @read_generation. */
struct frame_consumed {
	uint64_t client_records;
	uint64_t read_sequence;
	uint32_t read_generation;
	uint32_t offset;
};
#define FRAME_CONSUMED_LEN 24u

/* ACCEPTED: RAgent committed @server_records (whole records, handshake included), @drained bytes of DATA payload of
 * this stream left for the client's TCP connection, and the commits reached @write_generation. */
struct frame_accepted {
	uint64_t server_records;
	uint64_t drained;
	uint32_t write_generation;
};
#define FRAME_ACCEPTED_LEN 20u

/* VIOLATION: the offending record header as RAgent saw it. */
struct frame_violation {
	uint8_t type;
	uint16_t version;
	uint16_t length;
};
#define FRAME_VIOLATION_LEN 5u

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
 * FRAME_INCOMPLETE: more input is needed. Negative: the link must end: CSSL_E_TYPE (unknown), CSSL_E_RANGE (stream 0
 * where a stream is needed or the reverse; a flag this type does not have), CSSL_E_TRUNCATED or CSSL_E_TOO_LONG (a
 * length this type cannot have). A bad header is refused as soon as it is there, before its payload is. */
int frame_parse(const uint8_t *in, size_t len, struct frame *out);

/* Write a header of FRAME_HEADER_LEN bytes. */
void frame_header_write(
	uint8_t out[static FRAME_HEADER_LEN], uint32_t stream, enum frame_type type, uint8_t flags, uint16_t len);

/* Fixed payloads. The reading side returns 0 or a negative error for a wrong length. */
void frame_consumed_write(uint8_t out[static FRAME_CONSUMED_LEN], const struct frame_consumed *c);
int frame_consumed_read(const struct frame *f, struct frame_consumed *out);
void frame_accepted_write(uint8_t out[static FRAME_ACCEPTED_LEN], const struct frame_accepted *a);
int frame_accepted_read(const struct frame *f, struct frame_accepted *out);
void frame_violation_write(uint8_t out[static FRAME_VIOLATION_LEN], const struct frame_violation *v);
int frame_violation_read(const struct frame *f, struct frame_violation *out);
int frame_u64_read(const struct frame *f, uint64_t *out);
int frame_u8_read(const struct frame *f, uint8_t *out);

/* For logs: "DATA"; "?" for an unknown type. */
const char *frame_type_name(uint8_t type);

#endif
