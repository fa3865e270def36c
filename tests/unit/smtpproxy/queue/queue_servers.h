/* queue_servers.h: a queue whose servers are the test: it keeps the names of the functions that each is asked for, and
 * answers when it wants. */
#pragma once

#include "smtpproxy/queue/backup/backup_look.h"
#include "smtpproxy/queue/backup/functions.h"
#include "smtpproxy/queue/queue_core.h"
#include "smtpproxy/queue/rivals.h"
#include "smtpproxy/queue/uniting.h"

#define RUN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RUN_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define EPOCH 3u

extern struct queue *q;
extern struct backup *a, *b;
extern unsigned asked[BACKUPS][CHANGE_MARK + 1]; /* calls of each function */
extern uint64_t versions[BACKUPS];               /* of the last marker; UINT64_MAX: its number comes next */
extern int64_t now_ms;
extern const struct redis_link_ops *link_ops; /* as it asked for a link last */

/* a is in sync and alone, and b was read for what it holds. */
void begin(void);
void connected(struct backup *s, const char *run_id);
/* It shows the record of an owner of a lower epoch, which seals with another key, and marked the process @run_id under
 * @version, alone. */
void shows_another_key(struct backup *s, const char *run_id, const char *version);
/* A message of that id. */
struct item *comes(uint64_t id);
/* It was claimed, and has shown all that it has. */
void is_read(struct backup *s);
/* It answers all that it is asked. */
void answers(struct backup *s);
