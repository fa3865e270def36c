/* backup_calls.h: what a backup that is ours is asked under our token. Within this folder; the queue uses what backup.h
 * declares of it. A part of its own, because only here two requests may depend on their order.
 */
#pragma once

#include "smtpproxy/queue/backup/backup.h"

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
/* The reply to SCAN, MESSAGES, RENEW or the oldest CALL, which was sent at @sent_ms. */
void backup_answered(struct backup *b, enum backup_tag tag, int64_t sent_ms, const redisReply *reply);
/* An error reply to a call under our token: another owner, a full memory, or a server that cannot be used. */
void backup_call_failed(struct backup *b, const char *error);

/* As the drawing in backup.h allows. */
void backup_move(struct backup *b, enum backup_state to);
/* AWAY, and the line is dropped. The queue is told if the state was more than SEEN. The connections stay. */
void backup_fall(struct backup *b);
