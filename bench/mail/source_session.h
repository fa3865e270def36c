/* source_session.h: a session of smtp-source: at most one connection at a time, and one mail after the other on it. It
 * counts and times its steps; its host decides what it does next.
 *
 *   AWAY -> CONNECTING -> [SHAKING ->] BANNER -> EHLO -> [STARTTLS -> SHAKING -> EHLO ->] READY
 *   READY -> MAIL -> [RESET ->] READY;  READY -> QUITTING -> CLOSING -> AWAY -> RETIRED
 */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

#include "bench/load/client_tls.h"
#include "bench/mail/smtp_wire.h"
#include "bench/mail/source_mail.h"
#include "bench/mail/source_options.h"
#include "bench/mail/source_result.h"
#include "net/loop/wheel.h"
#include "smtp/line.h"

struct source_session;

struct source_host {
	struct worker *worker;
	const struct source_options *options;
	struct source_mail *mail;
	struct source_result *result;
	struct client_tls_shared tls;
	/* The session has nothing to do: it is AWAY, or READY for its next mail. */
	void (*on_free)(struct source_host *host, struct source_session *s);
	void (*on_pause_end)(struct source_host *host, struct source_session *s);
	/* A connect is over, well or not: the next may begin. */
	void (*on_connect_over)(struct source_host *host);
	/* Something failed, and --keep-going is not set. */
	void (*on_give_up)(struct source_host *host);
};

enum source_state {
	SOURCE_IS_AWAY,
	SOURCE_IS_CONNECTING,
	SOURCE_IS_SHAKING,
	SOURCE_IN_BANNER,
	SOURCE_IN_EHLO,
	SOURCE_IN_STARTTLS,
	SOURCE_IS_READY,
	SOURCE_IN_MAIL,
	SOURCE_IN_RESET,
	SOURCE_IS_QUITTING,
	SOURCE_IS_CLOSING,
	SOURCE_IS_RETIRED,
};

enum source_after_connection { SOURCE_FREE, SOURCE_PAUSES }; /* pauses: something failed */

struct source_session {
	struct smtp_wire wire;
	struct source_host *host;
	struct deadline deadline; /* of what it waits for */
	struct client_tls tls;
	struct smtp_line_reader reader;
	uint16_t code, lines;    /* of a reply that has begun */
	uint8_t state;           /* enum source_state */
	uint8_t offers_mask;     /* what EHLO listed, of enum source_offer */
	uint8_t after;           /* enum source_after_connection */
	uint8_t refused;         /* the mail under way will not be taken */
	uint8_t listed;          /* the host's */
	uint32_t said, answered; /* of the steps of a mail: MAIL, each RCPT, DATA or the chunks, the end */
	uint32_t accepted;       /* recipients */
	uint32_t ends_due;       /* LMTP: replies to the end of the mail that are still to come, once one came */
	uint32_t tries;          /* to connect, for this mail */
	uint64_t number;         /* among the sessions */
	uint64_t connections;
	unsigned target;      /* of the connection, in the options */
	uint64_t mails;       /* on this connection */
	uint64_t mail_number; /* of the mail under way; has_mail */
	uint64_t content_at;  /* bytes of the content that were written */
	uint32_t head_len, has_mail;
	uint64_t intended_ns;             /* when the mail should have begun */
	uint64_t step_ns;                 /* when this step began */
	uint64_t made_us;                 /* when the mail under way was made, since 1970 */
	TAILQ_ENTRY(source_session) next; /* the host's */
};

void source_session_init(struct source_session *s, struct source_host *host, uint64_t number);

/* AWAY or READY: this mail is to be sent. READY: at once; AWAY: source_session_connect() follows, in its turn. */
void source_session_take(struct source_session *s, uint64_t mail_number, uint64_t intended_ns);
void source_session_connect(struct source_session *s);

/* AWAY or READY: on_pause_end after this time. */
void source_session_pause(struct source_session *s, uint64_t ms);

/* READY: QUIT; on_free follows. */
void source_session_quit(struct source_session *s);

/* At once, in any state but AWAY; on_free follows. */
void source_session_abort(struct source_session *s);
void source_session_retire(struct source_session *s);

/* After the worker ended. */
void source_session_wipe(struct source_session *s);
