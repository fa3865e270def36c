/* sink_session.h: one client of smtp-sink, from its first byte to its end. It closes itself, and then calls the host
 * once. */
#pragma once

#include <sys/queue.h>

#include "bench/load/client_tls.h"
#include "bench/mail/sink_mail.h"
#include "bench/mail/sink_options.h"
#include "bench/mail/sink_result.h"
#include "bench/mail/sink_tx.h"
#include "bench/mail/smtp_wire.h"
#include "net/loop/wheel.h"
#include "proto/ids.h"
#include "smtp/line.h"

struct sink_session;

struct sink_host {
	struct worker *worker;
	struct sink_options *options; /* not const: its dice change */
	struct sink_result *result;
	struct client_tls_shared tls;
	FILE *dump;
	struct tx_ledger *ledger; /* NULL without --xcssltx */
	void (*on_mail)(struct sink_host *host);
	void (*on_gone)(struct sink_host *host, struct sink_session *s);
};

/* From IN_QUESTION on nothing is read. */
enum sink_state {
	SINK_IN_PROXY, /* a PROXY header is to come */
	SINK_IN_COMMANDS,
	SINK_IN_DATA,
	SINK_IN_CHUNK,
	SINK_IN_QUESTION,   /* waits for a decision, to answer a question */
	SINK_IS_DECIDING,   /* the mail is complete; a rule delays its decision */
	SINK_DECIDES_ALONE, /* the same, and the client has left */
	SINK_IS_CLOSING,
};

/* The step that follows the waiting reply. */
enum sink_then { SINK_GOES_ON, SINK_CLOSES, SINK_STARTS_TLS, SINK_TAKES_DATA };

struct sink_session {
	struct smtp_wire wire;
	struct sink_host *host;
	struct deadline deadline; /* of the waiting reply, or of silence */
	struct stream_bio bio;
	SSL *ssl;
	struct smtp_line_reader reader;
	struct sink_mail *mail; /* between MAIL and its end */
	struct sink_tx tx;
	char *reply; /* the waiting reply, or NULL */
	uint32_t reply_len, reply_at;
	uint32_t tarpit_ms;
	uint64_t discard; /* bytes of a refused chunk that are to come */
	uint8_t state;    /* enum sink_state */
	uint8_t then;     /* enum sink_then */
	uint8_t greeted;
	struct client_address source;  /* as it was counted */
	struct sockaddr_storage peer;  /* of the socket, not of a PROXY header */
	LIST_ENTRY(sink_session) next; /* the host's */
};

/* Takes over @fd of @s->peer. @over: sends 421 and closes. 0 or a libuv error: @fd is closed. */
enum sink_welcome { SINK_IS_WELCOME, SINK_IS_OVER };
int sink_session_open(struct sink_session *s, struct sink_host *host, int fd, enum sink_welcome welcome);

/* At once; on_gone follows. */
void sink_session_close(struct sink_session *s);
