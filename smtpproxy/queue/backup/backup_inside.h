/* backup_inside.h: shared by the files of a backup only. */
#ifndef CSSL_SMTPPROXY_QUEUE_BACKUP_BACKUP_INSIDE_H
#define CSSL_SMTPPROXY_QUEUE_BACKUP_BACKUP_INSIDE_H

#include "smtpproxy/queue/backup/backup.h"
#include "smtpproxy/queue/backup/functions.h"

/* Told as a server's answer: the marker of the server is of a gateway with another key. */
#define OTHER_KEY "another key"

/* The kind of a request, for its reply. Those before SAVE are questions of a look. */
enum backup_tag {
	ASKED_INFO,
	ASKED_OWNER,
	ASKED_LIBRARY,
	ASKED_LOAD,
	ASKED_SAVE,
	ASKED_CHECK,
	ASKED_CLAIM,
	ASKED_SCAN,
	ASKED_MESSAGES,
	ASKED_RENEW,
	ASKED_PING,
	ASKED_CALL,
};

/* FCALL @function 2 owner items token, with @more arguments to follow. */
void backup_call_begin(struct backup *b, const char *function, unsigned more);
/* Send as much as the window allows. */
void backup_send(struct backup *b);
void backup_send_at_turn_end(struct turn_end *t);
/* The oldest call was answered. */
void backup_call_answered(struct backup *b, const redisReply *reply);
/* An error reply to a call under our token: another owner, a full memory, or a server that cannot be used. */
void backup_call_failed(struct backup *b, const char *error);

/* Its answer to what it was asked is an error: told once, until it lets this gateway go further or says something
 * else. */
void backup_refused(struct backup *b, enum backup_refusal at, const char *answer);
/* It goes as far as behind @at. */
void backup_let_in(struct backup *b, enum backup_refusal at);

#define MARKER_FIELDS 20u
/* The names and values of the newest marker, for this server. */
void backup_mark_out(struct backup *b);

/* The active path is ready: ask for the identity and the owner of the server. */
void backup_look(struct backup *b);
void backup_look_answered(struct backup *b, enum backup_tag tag, const redisReply *reply);
/* CHECK: ask again for the policies that an operator may change while the server runs. */
void backup_ask_policies(struct backup *b, enum backup_tag tag);
void backup_claim_answered(struct backup *b, const redisReply *reply);
/* SCAN, MESSAGES */
void backup_read_answered(struct backup *b, enum backup_tag tag, const redisReply *reply);
void backup_move(struct backup *b, enum backup_state to);

#endif
