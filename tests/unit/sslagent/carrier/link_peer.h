/* link_peer.h: RAgent's half of a link, byte by byte, in front of the agent of connection_fixture.h; and a client
 * behind it. */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "proto/frame.h"
#include "sslagent/carrier/carrier_home.h"
#include "tests/unit/sslagent/connection/connection_fixture.h"

#define FRAMES_MAX 64

/* A link as RAgent sees it, and a client behind it on one stream. */
struct peer {
	int fd; /* -1: closed */
	uint8_t in[1u << 20];
	size_t in_len;
	struct frame frames[FRAMES_MAX]; /* payloads are in @kept */
	uint8_t *kept[FRAMES_MAX];
	unsigned count;
	int ended;
	struct memory_client *client;
	uint8_t got[65536];
	size_t got_len;
};

/* Two links of the same RAgent. */
extern struct peer p, q;
extern struct carrier_home carriers;
extern int agent_leaves;                    /* 1: the agent's process says that it leaves */
extern enum transport peer_over;            /* of the next link */
extern uint8_t id_bytes[CONNECTION_ID_LEN]; /* of the connection that was opened last */

extern const uint8_t proof[FRAME_PROOF_LEN]; /* of this RAgent, whichever process */

/* Open @p; @q is closed. */
void open_peers(void);
/* The same, and RAgent says what its next process will show. */
void open_proven_peers(void);
/* Close both, and assert that the agent has no link and no connection left. */
void close_peers(void);
void peer_open(struct peer *x);
void peer_close(struct peer *x);
/* As if no frame had come yet. */
void peer_forget_frames(struct peer *x);
/* Take all frames that came, and give the client's records to the agent. */
void peer_turn(struct peer *x);

#define peers_until(condition)                                                                                         \
	do {                                                                                                           \
		uint64_t limit_ = now_ms() + WAIT_LIMIT_MS;                                                            \
		while (peer_turn(&p), peer_turn(&q), !(condition)) {                                                   \
			ck_assert_msg(now_ms() < limit_, "never: %s", #condition);                                     \
			turn();                                                                                        \
		}                                                                                                      \
	} while (0)

/* Frames of that type that came. */
unsigned count_of(const struct peer *x, enum frame_type type);
const struct frame *last_of(const struct peer *x, enum frame_type type);

/* The client of @x gets the records of @f, if it has any. */
void feed_client(struct peer *x, const struct frame *f);
void send_frame(struct peer *x, uint32_t stream, enum frame_type type, const void *payload, size_t len);
void send_message(struct peer *x, uint32_t stream, enum frame_type type, const ProtobufCMessage *m);
/* RAgent asks for stream 1, of the connection that was opened last. */
void send_reattach(struct peer *x, uint32_t epoch);
/* `lost` of this RAgent; that of the cluster is longer. */
void set_lost_ms(uint32_t ms);
/* A new connection id; the caller frees @open->endpoints. */
void fill_open(Cssl__LinkOpen *open, const char *listener);
void send_open(struct peer *x, uint32_t stream, const char *listener);
/* A client behind stream 1 that has shaken hands. */
void begin_client(struct peer *x);
