/* backup_look.h: what a server tells of itself and of its owner, and the claim. Within this folder, and for the queue:
 * it looks at a server again and again before it claims it. A part of its own, because nothing of it touches the line
 * of changes.
 */
#pragma once

#include "smtpproxy/queue/backup/backup_calls.h"

enum look {
	LOOK_ALL,      /* the active path has just become ready: identity, policies, library and owner; then on_seen */
	LOOK_OWNER,    /* SEEN: the owner's record again; then on_seen. Nothing happens while a look is under way */
	LOOK_POLICIES, /* those that an operator may change while the server runs */
};

void backup_look(struct backup *b, enum look what);
/* SEEN: claim it for shared->epoch; then on_claimed. */
void backup_claim(struct backup *b);
/* The reply to a question of backup_look(), or to the claim. */
void backup_look_answered(struct backup *b, enum backup_tag tag, const redisReply *reply);
