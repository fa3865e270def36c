/* link.h: this agent's end of one link from a worker of RAgent, for the link's own files only: link.c (frames from
 * RAgent, life), link_stream.c (streams as carriers of connections) and link_parked.c (streams that wait for RAgent's
 * next process, and go on). All others use carrier_home.h.
 */
#pragma once

#include "net/memory/holdings.h"
#include "net/stream/framed.h"
#include "net/stream/streams.h"
#include "sslagent/carrier/carrier_home.h"
#include "sslagent/carrier/held.h"
#include "sslagent/connection/connection.h"

enum link_stage {
	LINK_OPEN,
	LINK_PARKED, /* RAgent's process died, or the link broke; the streams wait for the next link */
	LINK_OVER    /* it has no streams any more, and is freed once its socket is closed */
};
enum link_socket { LINK_SOCKET_OPEN, LINK_SOCKET_CLOSED };
/* Do its streams outlive it? */
enum link_proof { LINK_UNPROVEN, LINK_PROVEN };

/* May its frames go out? */
enum link_turn { LINK_TURN_HAS, LINK_TURN_AWAITS };

/* Streams of a link that await their turn, oldest first (link_parked.c). */
struct link_turns {
	uint32_t *ids; /* those of streams that ended meanwhile stay, and are skipped */
	size_t first, end, cap;
	uint64_t ahead; /* so many bytes have to be written before the next turn, beyond a limit */
};

struct carrier_link {
	struct framed framed;
	struct carrier_home *home;
	struct carrier_link *next;
	uint64_t number; /* unique in its worker */
	char peer[64];
	uint64_t peer_boot_id;
	uint16_t peer_worker;
	uint8_t proof[FRAME_PROOF_LEN]; /* PROVEN: what RAgent's next process will show */
	struct streams streams;
	struct turn_end doom;       /* of a link that failed: it is closed when nobody up the stack uses it */
	struct deadline quiet_due;  /* OPEN: RAgent was silent for long */
	struct deadline parked_due; /* PARKED: the streams end */
	struct link_turns turns;
	int failure; /* why; 0: none */
	enum link_stage stage;
	enum link_socket socket;
	enum link_proof proven;
};

/* A connection's carrier on this link. */
struct link_stream {
	struct carrier carrier; /* first */
	uint32_t id;
	uint32_t order; /* number of the last MOVE; 0: none came */
	struct carrier_link *link;
	struct connection *connection; /* NULL: it is over, and END is held; or there is none yet */
	struct preamble_stream *clear; /* in the place of a connection */
	struct connection_id connection_id;
	uint32_t epoch;
	uint8_t proven;          /* enum link_proof; PROVEN: its frames are held from its first one on */
	uint8_t is_over;         /* END is held until RAgent answers it */
	uint8_t turn;            /* enum link_turn */
	uint64_t client_records; /* of the connection, that came; in clear each byte counts as one */
	struct held held;
	struct holding holding; /* its part of the worker's budget */
};

/* link.c */
/* Its socket is closed soon; what its streams say is only held, if the link is PARKED then. */
void carrier_link_stop(struct carrier_link *l);
/* Close it, as if it was lost. All streams are forgotten. */
void carrier_link_close(struct carrier_link *l);
void carrier_link_fail(struct carrier_link *l, int error);
/* On the link itself. */
void carrier_link_send_message(struct carrier_link *l, enum frame_type type, const ProtobufCMessage *m);
/* Its connection ends; the stream is freed, and is in no table. */
void carrier_link_forget_stream(struct link_stream *s, enum end_reason reason);
/* The link has none of its streams any more, and each is left to @fn. */
void carrier_link_give_up_streams(struct carrier_link *l, void (*fn)(void *ctx, uint32_t id, void *holder));
/* After the end of its last stream, and of its socket. */
void carrier_link_free_if_over(struct carrier_link *l);

/* link_stream.c */
/* NULL: it is the carrier of another kind. */
struct link_stream *link_stream_of(struct carrier *c);
/* NULL: out of memory. */
struct link_stream *link_stream_add(
	struct carrier_link *l, uint32_t id, const struct connection_id *connection, uint32_t epoch);
void link_stream_drop(struct link_stream *s);
/* Its connection is over: drop it, unless RAgent has to hear of the end, perhaps from the next process. */
void link_stream_ended(struct link_stream *s);
/* It is in no table. */
void link_stream_free(struct link_stream *s);
/* Returns 0: to refuse is no breach of the link protocol. */
int link_stream_refuse(struct carrier_link *l, uint32_t id, Cssl__LinkRefused__Reason reason, const char *detail);
/* Send a frame; while the stream is parked, it is only held. */
void link_stream_say(struct link_stream *s, enum frame_type type, uint8_t flags, const void *payload, size_t len);
/* RAgent confirmed frames. */
void link_stream_confirm(struct link_stream *s, const struct frame_accepted *a);
/* Send a held frame on the link. */
void link_stream_pass(struct link_stream *s, struct held_frame *f);

/* link_parked.c */
/* So many bytes went out: there may be room for the next streams that await their turn. */
void link_turns_written(struct carrier_link *l, size_t len);
/* None has a turn there any more. The streams themselves are not looked at. */
void link_turns_clear(struct carrier_link *l);
int carrier_link_take_proof(struct carrier_link *l, const struct frame *f);
int carrier_link_reattach(struct carrier_link *l, const struct frame *f);
/* For so long the network may be cut. It is shorter than the time after which this RAgent thinks an agent lost. */
uint64_t carrier_link_patience_ms(const struct carrier_link *l);
/* May its streams wait for the next process? */
bool carrier_link_may_park(const struct carrier_link *l);
void carrier_link_park(struct carrier_link *l);
/* PARKED: it is over. */
void carrier_link_end_parked(struct carrier_link *l);
/* If it is PARKED: it is over once it has no stream any more. */
void carrier_link_end_parked_if_empty(struct carrier_link *l);
