/* transaction.h: follows both directions of a session without changing a byte. It knows which command a reply answers,
 * how far the transaction is (RFC 5321 3.3), and whether the session is at a checkpoint.
 *
 *   NONE --MAIL--> MAIL --DATA--> DATA --354--> CONTENT --end--> DOT --reply--> NONE
 *                    |  <--refused--'              ^              ^
 *                    '------------BDAT-------------'----LAST------'
 *
 * The state moves when a command is passed on, because commands are pipelined (RFC 2920); the reply then confirms it or
 * takes it back. A client may begin a message before the one before is answered; each has its number.
 */
#pragma once

#include "smtp/command.h"
#include "smtp/data.h"
#include "smtp/ehlo.h"
#include "smtp/line.h"
#include "smtp/reply.h"

enum smtp_tx_state { SMTP_TX_NONE, SMTP_TX_MAIL, SMTP_TX_DATA, SMTP_TX_CONTENT, SMTP_TX_DOT };

/* What a reply answers: a verb, or one of these. */
enum smtp_turn {
	SMTP_TURN_BANNER = SMTP_VERB_COUNT,
	SMTP_TURN_DOT,       /* the end of DATA's content */
	SMTP_TURN_BDAT_LAST, /* the last chunk */
	SMTP_TURN_AUTH_LINE, /* the client's answer to a 334 (RFC 4954 4) */
	SMTP_TURN_NOTHING,   /* a 421 that answers no command (RFC 5321 3.8) */
	SMTP_TURN_COUNT
};

#define SMTP_TX_QUEUE_MAX   128u /* commands without a reply; more have to wait */
#define SMTP_TX_CLASSES_MAX 128u /* commands of a transaction whose replies' classes are remembered */

/* Commands that are not read before the replies that they wait for: SMTP_CLIENT_WAIT. Bits. */
enum smtp_tx_hold {
	SMTP_TX_HOLDS_CHUNKS = 1, /* BDAT, while any reply is due */
	SMTP_TX_HOLDS_MAIL = 2,   /* MAIL, while the reply to the end of a message is due */
	SMTP_TX_HOLDS_LAST = 4,   /* BDAT of a last chunk, while any reply is due */
};

struct smtp_tx_turn {
	uint8_t turn; /* enum smtp_verb or enum smtp_turn */
	uint8_t own;  /* enum smtp_own: answered by us */
	uint8_t tx;   /* low byte of its transaction's number, never 0; 0: it belongs to none */
};

struct smtp_tx_rules {
	unsigned parse;                 /* enum smtp_parse_flag */
	uint32_t data_refuse;           /* SMTP_DATA_BIT()s */
	uint16_t client_max, reply_max; /* the longest lines, which are the sizes of the two buffers */
	uint8_t one_by_one; /* each command waits for the reply to the command or content before: for servers without
			       PIPELINING */
};

/* The caller's memory, for the life of the follower. */
struct smtp_tx_memory {
	char *client_line, *reply_line; /* of the sizes above */
	struct smtp_ehlo *ehlo;         /* gets the server's last offers; NULL: not wanted */
};

/* Embedded; read by the caller, changed only by the functions below. */
struct smtp_tx {
	struct smtp_tx_rules rules;
	struct smtp_tx_memory memory;

	enum smtp_tx_state state;
	uint64_t number;         /* of the transaction that the client is in or was in last; from 1 */
	uint64_t done, accepted; /* transactions whose end was answered, and those with 2xx */
	uint32_t rcpts, rcpts_accepted, rcpts_refused;
	uint16_t mail_code;    /* the reply to MAIL; 0: none yet */
	uint8_t greeting;      /* SMTP_VERB_EHLO or HELO once accepted; 0 */
	uint8_t authenticated; /* AUTH was accepted, or a command that nobody here knows, which counts as AUTH */
	uint8_t closing;       /* a 421, or the reply to QUIT: nothing more will be answered */
	uint8_t opaque; /* the server accepted a command that cannot be followed: there are no more checkpoints */
	uint8_t tls;    /* STARTTLS was accepted: no more SMTP in clear follows */
	char name[SMTP_DOMAIN_MAX + 1]; /* what the client called itself */

	uint64_t message_len; /* of the content so far, or of the last message */
	uint16_t classes_len;
	char classes[SMTP_TX_CLASSES_MAX]; /* first digits of the replies to this transaction's commands, in order */

	/* The machine's own. */
	uint8_t mode, waits, pending, early;
	uint8_t holds; /* enum smtp_tx_hold */
	uint16_t queue_from, queue_len;
	struct smtp_tx_turn queue[SMTP_TX_QUEUE_MAX];
	struct smtp_line_reader client;
	struct smtp_reply_reader server;
	struct smtp_data data;
	char head[3]; /* of a line: bytes that were held back, and the next one */
	struct smtp_bdat bdat;
};

/* Begins before the server's banner, or behind it. */
enum smtp_tx_start { SMTP_TX_BEFORE_BANNER, SMTP_TX_BEHIND_BANNER };
void smtp_tx_begin(struct smtp_tx *t, const struct smtp_tx_rules *rules, const struct smtp_tx_memory *memory,
	enum smtp_tx_start start);

/* From here on @holds (bits) are held, and no others. */
void smtp_tx_hold(struct smtp_tx *t, unsigned holds);

enum smtp_client_kind {
	SMTP_CLIENT_MORE,    /* all was read */
	SMTP_CLIENT_WAIT,    /* the meaning of the next bytes depends on the server's reply: give them again after it */
	SMTP_CLIENT_COMMAND, /* one line; smtp_tx_pass() or smtp_tx_answer() comes next */
	SMTP_CLIENT_AUTH_LINE,   /* one line of an AUTH exchange */
	SMTP_CLIENT_CONTENT,     /* a piece of the message in its wire form, or of a chunk. A dot at the head of a line,
				    and a CR behind it, wait for the next byte: a server could take them for an end */
	SMTP_CLIENT_CONTENT_END, /* the last piece, with the end; of BDAT: of this chunk */
	SMTP_CLIENT_FLAW, /* not to be passed: its last byte showed a flaw that the rules refuse; tx->data.flaws */
};

struct smtp_client_event {
	enum smtp_client_kind kind;
	struct smtp_span wire;       /* the bytes to pass on, until the next call; a line always whole */
	struct smtp_command command; /* COMMAND */
	enum smtp_own refusal;       /* COMMAND: what is wrong with it, or NONE */
	unsigned flaws;              /* COMMAND, AUTH_LINE: of the line (line.h) */
	uint8_t discard;             /* CONTENT, CONTENT_END: part of a chunk that smtp_tx_answer() refused */
};

/* Reads up to the next event of what the client sent; @taken says how much. */
void smtp_tx_client(struct smtp_tx *t, const char *in, size_t len, size_t *taken, struct smtp_client_event *out);

/* The command was passed to the server. Not for a line that is too long, nor for a BDAT that is wrong. */
void smtp_tx_pass(struct smtp_tx *t, const struct smtp_client_event *event);

/* The command was not passed: @own answers it, in its turn (SMTP_SERVER_OWN). */
void smtp_tx_answer(struct smtp_tx *t, const struct smtp_client_event *event, enum smtp_own own);

/* The command that was answered last ends the session: nothing more of the client is read. */
void smtp_tx_stop(struct smtp_tx *t);

enum smtp_server_kind {
	SMTP_SERVER_MORE, /* all was read */
	SMTP_SERVER_LINE, /* one line of a reply */
	SMTP_SERVER_OWN,  /* nothing was read: a reply of our own is due */
	SMTP_SERVER_BAD,  /* not a reply, without an end, or an answer to nothing: the session cannot go on */
};

struct smtp_server_event {
	enum smtp_server_kind kind;
	struct smtp_reply_line line; /* LINE; valid until the next call */
	unsigned turn;               /* LINE, OWN: the answered command, enum smtp_verb or enum smtp_turn */
	enum smtp_own own;           /* OWN */
	int error;                   /* BAD: of error.h */
};

/* Reads up to the next event of what the server sent. To be called with no bytes after smtp_tx_answer(). */
void smtp_tx_server(struct smtp_tx *t, const char *in, size_t len, size_t *taken, struct smtp_server_event *out);

/* The caller keeps the reply that has begun from the client, and ends the session with words of its own. */
void smtp_tx_drop_reply(struct smtp_tx *t);

/* True when no command is unanswered, no transaction is open, and both sides are between lines. */
bool smtp_tx_is_checkpoint(const struct smtp_tx *t);

/* True when the end of a message was passed on and is not answered. */
bool smtp_tx_end_is_due(const struct smtp_tx *t);

/* True when @code, as the reply to the end @turn of the current message, ends the transaction. A last chunk out of
 * sequence, or without recipients, is refused and leaves the transaction open (RFC 3030 2). May also be called after
 * the reply.
 */
bool smtp_tx_ends(const struct smtp_tx *t, unsigned turn, unsigned code);
