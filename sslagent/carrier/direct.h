/* direct.h: shared by direct.c (TCP connections that carry TLS), direct_listen.c (listeners, and the
 * access log) and direct_preamble.c (the dialogue before STARTTLS) only.
 */
#pragma once

#include <sys/queue.h>

#include "net/socket/discard.h"
#include "net/stream/stream.h"
#include "proto/end_reason.h"
#include "sslagent/carrier/carrier_home.h"
#include "sslagent/connection/carrier.h"

struct direct_preamble;

struct direct_listener {
	struct direct_listener *next;
	struct carrier_home *home;
	const struct conf_direct *conf;
	struct listener *listener;
	LIST_HEAD(, direct) clients;
};

/* A client's TCP connection. */
enum direct_state {
	DIRECT_PROXY_HEADER, /* waits for the header */
	DIRECT_PREAMBLE,     /* speaks in clear (direct_preamble.c) */
	DIRECT_FIRST_RECORD, /* waits for the ClientHello's header */
	DIRECT_SERVING,
	DIRECT_LINGERING, /* our FIN was sent or will follow; the client's last bytes are read and dropped, so that no
			     reset overtakes the FIN */
	DIRECT_CLOSED,
};

struct direct {
	struct carrier carrier;       /* first */
	struct client_address source; /* the key for the limit of sources */
	struct stream stream;
	struct direct_listener *listener;
	struct connection *connection;
	struct direct_preamble *preamble; /* PREAMBLE */
	struct deadline deadline;
	struct sockaddr_storage client, server;
	LIST_ENTRY(direct) entry;
	uint64_t accepted_ms;
	uint64_t drained, clear_len;          /* bytes that the client took; and how many of them came before its TLS */
	uint64_t discarded, lingers_since_ms; /* LINGERING */
	uint8_t state;                        /* enum direct_state */
	uint8_t discard_of;                   /* LINGERING: enum discard_of */
	uint8_t silence;                      /* enum direct_silence */
	enum { SOURCE_UNKNOWN, SOURCE_COUNTED } source_state;
};

/* ASKED: the idle time-out is over, and the connection awaits a verdict of its backend, which has a longer limit. */
enum direct_silence { DIRECT_NOT_SILENT, DIRECT_ASKED };

/* direct.c */
/* Takes over @fd, which joins @l. 0, or -1: no memory, and it is closed. */
int direct_begin(struct direct_listener *l, int fd, const struct sockaddr_storage *peer);
/* direct_finish() for one of them. */
void direct_finish_one(struct direct *d, enum direct_whom whom);
/* Without a goodbye: the client is gone, or has to go now. */
void direct_drop(struct direct *d, enum end_reason reason);
/* A byte came or went: the idle time-out begins again. */
void direct_watch_silence(struct direct *d);
void direct_abort(struct direct *d);
/* Send FIN after all other output. Drop the rest of the client's bytes. */
void direct_linger(struct direct *d, enum discard_of who);
/* Count and log. Then send @words and FIN; with @len 0, reset. */
void direct_refuse_saying(struct direct *d, enum end_reason reason, const void *words, size_t len);
/* Count, log, and reset. */
static inline void direct_refuse(struct direct *d, enum end_reason reason)
{
	direct_refuse_saying(d, reason, NULL, 0);
}
/* From now on the time limit of the handshake applies. */
void direct_await_handshake(struct direct *d);

/* direct_listen.c: the line in the access log. @end: what the client saw. */
void direct_log_end(const struct direct *d, enum end_reason reason, const char *end);

/* direct_preamble.c: the words for clients of a listener. */
/* The listener whose settings it uses. */
const struct conf_listener *direct_conf(const struct direct_listener *l);
/* Do its clients begin in clear, in a preamble? */
bool direct_begins_in_clear(const struct direct_listener *l);
/* The words for a client that is one too many. Returns their length; 0: it is reset without words. */
#define DIRECT_WORDS_MAX 128u
size_t direct_preamble_full(const struct direct_listener *l, uint8_t out[static DIRECT_WORDS_MAX]);

/* direct_preamble.c. Each may end the connection: check its state afterwards. */
/* The client is known, and begins in clear: state PREAMBLE. */
void direct_preamble_begin(struct direct *d);
/* Bytes of the client. Returns how many were used. State FIRST_RECORD: STARTTLS was sent and answered. */
size_t direct_preamble_read(struct direct *d, const uint8_t *data, size_t len);
void direct_preamble_written(struct direct *d);
void direct_preamble_fin(struct direct *d);
void direct_preamble_finish(struct direct *d, enum end_reason reason);
/* The client is gone. */
void direct_preamble_forget(struct direct *d);
