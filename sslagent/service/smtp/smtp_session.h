/* smtp_session.h: a client's mail behind TLS, as its owner passes it on: smtp/relay.h between the client and a server,
 * with what waits in front of both. Bytes in, bytes out; the connection moves them.
 *
 *     IDLE --a server is wanted--> OPENING --> TALKING --> OVER
 *      ^                             ^
 *      '--------- HEARING -----------'         after the loss of an owner
 *
 * IDLE: there is no server; at its first word the client gets one. OPENING: what a new server has to hear first: the
 * greeting that the client said before, XCLIENT, and the question what became of a transaction (doc/xcssltx.md).
 * HEARING: the client's bytes that a lost owner may have used are collected. OVER: the last reply is said.
 */
#pragma once

#include "conf/conf.h"
#include "proto/ids.h"
#include "smtp/relay.h"
#include "sslagent/service/smtp/smtp_note.h"
#include "sslagent/service/smtp/smtp_pieces.h"
#include "sslagent/service/smtp/smtp_rehearsal.h"

enum smtp_stage { SMTP_IDLE, SMTP_HEARING, SMTP_OPENING, SMTP_TALKING, SMTP_OVER };

/* The remaining steps of OPENING, in order. */
enum smtp_opening { SMTP_GREETS, SMTP_INTRODUCES, SMTP_GREETS_AGAIN, SMTP_ASKS, SMTP_OPENED };

/* After a loss: how the open mail continues. */
enum smtp_resuming {
	SMTP_RESUMES_NOTHING,
	SMTP_REPEATS,    /* the server repeats replies that the client has got, and these are dropped */
	SMTP_ASKS_FIRST, /* the message may have been complete; only the server knows */
	SMTP_ASKS_BLIND, /* the same, but the client's bytes are gone */
};

/* The name in the first greeting to a server. */
enum smtp_greeter { SMTP_NOBODY_GREETS, SMTP_AGENT_GREETS, SMTP_CLIENT_GREETS };

#define SMTP_EPOCHS_ASKED_MAX 8u
#define SMTP_EPOCHS_UNTOLD_MAX                                                                                         \
	4u /* owners in a row that named a transaction and were lost before RAgent got the note */

struct smtp_past {
	uint8_t how;         /* enum smtp_resuming */
	uint8_t again;       /* service.h */
	uint16_t epoch;      /* of the next question; down to @note.epoch */
	uint32_t replies;    /* that the client got since the checkpoint */
	uint32_t dropped;    /* REPEATS: so many of them have come again */
	uint32_t classes_at; /* index of the first one's class in the note */
	struct smtp_heard heard;
	struct smtp_note note; /* as it was when the session was resumed */
};

/* Bytes that grow. They are wiped. */
struct smtp_buffer {
	uint8_t *data;
	size_t len, cap;
};

struct smtp_session {
	const struct conf_listener *listener;
	const struct conf_backend *backend;
	struct smtp_relay_rules rules;
	struct smtp_relay *relay; /* OPENING, and TALKING unless idle; else NULL */
	struct smtp_past *past;   /* NULL: nothing has to be continued */
	uint8_t stage;            /* enum smtp_stage */
	uint8_t opening;          /* enum smtp_opening */
	uint8_t greeter;          /* OPENING: enum smtp_greeter */
	uint8_t doubt;            /* enum smtp_own: an error found in the middle of a reply; it ends the session */
	uint8_t memory;           /* enum smtp_memory */
	uint8_t last;             /* OVER: enum smtp_tx_state of the server */
	uint8_t over_for;         /* OVER: enum smtp_own with which we ended it; NONE: it ended in order */
	struct smtp_note note;    /* the note for the present state */
	uint32_t replies;         /* for the client, since the last checkpoint */
	unsigned refusals;        /* of this owner, without those of @relay */
	struct smtp_mark here;    /* where the bytes began that the relay got last */
	uint64_t record;          /* of the client's next bytes */
	uint16_t epoch;           /* of the owner */
	const struct connection_id *connection; /* of the owner; NULL: not known */
	/* Waiting bytes of the client; replies that the client has to take. While there are replies, no byte of the
	 * client is used. So @answers holds at most the replies in one read from the server, of which
	 * SMTP_TX_QUEUE_MAX commands can be unanswered, or one reply of our own. @waiting holds at most a window and
	 * a record. */
	struct smtp_pieces waiting, answers;
	size_t taken;                  /* client bytes used since the last question */
	struct smtp_buffer reply, out; /* the reply that is being made; the bytes for the server */
	char id[SMTP_TX_ID_MAX + 1];   /* of the connection, for names of transactions; "": it has none */
	char introduction[96];         /* the client's address, for XCLIENT; "": none is needed */
	char greeting[SMTP_DOMAIN_MAX + sizeof "EHLO \r\n"];
	uint8_t left[SMTP_NOTE_MAX]; /* the last note that was left */
	uint16_t left_len;
};
enum smtp_memory { SMTP_MEMORY_THERE, SMTP_MEMORY_WANTED };

/* @s is zero. smtp_session_clear() has to follow. */
void smtp_session_init(struct smtp_session *s, const struct conf_listener *listener);
void smtp_session_clear(struct smtp_session *s);

void smtp_session_client(struct smtp_session *s, const uint8_t *data, size_t len);
void smtp_session_answered(struct smtp_session *s, size_t len); /* of the first answer: sealed for the client */
void smtp_session_at_checkpoint(struct smtp_session *s);
void smtp_session_end(struct smtp_session *s, enum smtp_own why);
/* Counts the end of a client's mail behind TLS. @why: the last reply. */
void smtp_end_count(enum smtp_own why);

/* smtp_opening.c. The relay is OPEN and no reply is due: do the next step of OPENING. */
void smtp_opening_step(struct smtp_session *s);
/* From now on the new server's extensions, and its name for its memory of transactions, are those of the session. */
void smtp_opening_note(struct smtp_session *s);
/* OPENING: the reply to one of our own commands is complete. */
void smtp_opening_reply(struct smtp_session *s);

/* smtp_resume.c */
/* A server with a memory of transactions is connected. Writes the question. 0: there is none left; go on with the
 * next step. */
bool smtp_resume_ask(struct smtp_session *s, char *out, size_t cap);
void smtp_resume_answer(struct smtp_session *s);

/* What smtp_session's own files share. */
void smtp_session_say(struct smtp_session *s, const char *reply, size_t len); /* one reply for the client */
void smtp_session_talk(struct smtp_session *s);            /* OPENING -> TALKING: what waits goes on */
void smtp_session_use(struct smtp_session *s, size_t len); /* the first waiting bytes are not needed any more */
/* What the client of this relay was told, for the note: smtp_told() of the extensions of the server. */
void smtp_session_told(const struct smtp_session *s, uint8_t out[static SMTP_TOLD_LEN]);
/* Writes the command into @s, and returns it; NULL for NOBODY. CLIENT: note.greeting is not UNKNOWN. */
const char *smtp_session_greeting(struct smtp_session *s, enum smtp_greeter greeter);
