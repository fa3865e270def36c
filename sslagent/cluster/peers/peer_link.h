/* peer_link.h: an agent-agent link: one TCP or UNIX connection, opened under agents.key between two agents, that
 * carries PeerMessages. It is a part of its own because it knows nothing of what they say. Sealed on TCP; trusted, and
 * able to carry descriptors, on UNIX. Used on the main thread.
 *
 *   CONNECTING --> OPENING --> OPEN
 *       |             |          |
 *       +-------------+----------+---> ENDED (on_end was or will be called) ---> CLOSING
 *
 * peer_link_close() is legal in every state.
 */
#pragma once

#include "net/loop/wheel.h"
#include "net/socket/address.h"
#include "net/stream/stream.h"
#include "proto/opening.h"
#include "proto/peer.pb-c.h"
#include "sslagent/cluster/peers/message_assembler.h"

struct batch_cipher;

#define PEER_LOST_MS        3000 /* a link silent for so long is gone */
#define PEER_LINK_SILENT_MS 250  /* an accepted link waits so long for the first message */

enum peer_link_state {
	PEER_LINK_CONNECTING,
	PEER_LINK_OPENING,
	PEER_LINK_OPEN,
	PEER_LINK_ENDED,
	PEER_LINK_CLOSING,
	PEER_LINK_STATE_COUNT
};

struct peer_link;

/* No callback comes during a call to the link. Each callback may close the link. */
struct peer_link_ops {
	/* Both sides have proven themselves. Operations without on_message and on_drained are changed by then. */
	void (*on_open)(struct peer_link *l);
	/* @m is valid in the call. 0, or negative: the peer broke the protocol; on_end follows. */
	int (*on_message)(struct peer_link *l, const Cssl__PeerMessage *m);
	/* Fewer bytes wait for the kernel than before. */
	void (*on_drained)(struct peer_link *l);
	/* Over: @error is CSSL_E_*, libuv's, or 0 (the peer closed). The owner calls peer_link_close(). */
	void (*on_end)(struct peer_link *l, int error);
	/* The last call: it is freed when this returns. */
	void (*on_closed)(struct peer_link *l);
	/* An accepted link got its first message, sealed under the key. It may be a replay. May be NULL. */
	void (*on_heard)(struct peer_link *l);
};

#define PEER_LINK_FDS_MAX 64u
/* @ctx and @ops may change. Others read state, error, heard_ms and address. */
struct peer_link {
	struct stream stream; /* first */
	const struct peer_link_ops *ops;
	void *ctx;
	uint8_t state;    /* enum peer_link_state */
	uint8_t ended_in; /* the state in which it ended by itself */
	uint8_t protection;
	int error; /* for the next report */
	struct opening *opening;
	struct batch_cipher *sealing, *opening_cipher; /* NULL on a trusted link */
	struct message_assembler assembler;
	struct deadline deadline; /* of the opening; then of a report */
	uint64_t heard_ms;
	int fds[PEER_LINK_FDS_MAX]; /* came, and no message has taken them yet */
	unsigned fd_count;
	char address[ADDRESS_TEXT_MAX]; /* for logs: "unix" or the address of the other side */
};

struct peer_link_conf {
	struct worker *worker;
	const struct peer_link_ops *ops;
	void *ctx;
	const struct key_ring *ring;
	const char *name; /* this agent's */
	uint64_t boot_id;
	unsigned workers;
};

/* Connect to an agent. NULL: out of memory, or the connect failed at once. @peer: its name, for fault points. */
struct peer_link *peer_link_connect(const struct peer_link_conf *conf, const struct sockaddr *to, const char *peer);
/* An agent connected: @fd is taken over. NULL: out of memory. */
struct peer_link *peer_link_accept(const struct peer_link_conf *conf, int fd, const struct sockaddr *from);
/* End it with on_end(@error), from the loop. */
void peer_link_end(struct peer_link *l, int error);
/* Legal in any state, twice, and with NULL. */
void peer_link_close(struct peer_link *l);

/* With a descriptor (duplicated; UNIX only), or PEER_NO_FD. 0; CSSL_E_STATE: not open, or it passes no descriptors;
 * CSSL_E_NO_MEMORY; CSSL_E_FULL: the peer does not read; CSSL_E_TOO_LONG: on these four nothing was sent.
 * CSSL_E_SYSTEM: the descriptor was not. */
#define PEER_NO_FD (-1)
int peer_link_send(struct peer_link *l, const Cssl__PeerMessage *m, int fd);
/* The descriptor of that inode that came with a message, or -1. Descriptors that came before it are closed. */
int peer_link_take_fd(struct peer_link *l, uint64_t inode);

static inline bool peer_link_passes_fds(const struct peer_link *l)
{
	return l->protection == LINK_TRUSTED && l->state == PEER_LINK_OPEN;
}

/* The hello of the other side; believed once the link is open. NULL: none came yet. */
static inline const struct link_hello *peer_link_peer(const struct peer_link *l)
{
	return opening_peer(l->opening);
}
