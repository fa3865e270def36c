/* event_log.h: the log of transactions: a file of JSON lines, and the newest records in memory for the control API.
 * Adding never waits: a thread writes (event_writer.h). While the file takes nothing, records wait in memory; those for
 * which there is no room there, and those that the file refuses, are dropped and counted.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#define EVENT_LOG_KEPT     512u /* records in memory */
#define EVENT_LOG_INSTANCE 9u   /* hexadecimal digits, and the terminator */

struct event_log;

/* @path NULL: no file. @dropped counts. NULL: out of memory. */
struct event_log *event_log_create(const char *path, uint64_t *dropped);
/* Waits for up to five seconds until all records are written, and logs how many were not. NULL is legal. */
void event_log_destroy(struct event_log *l);

/* Open the file, before the first record. 0 or negative errno. */
int event_log_open(struct event_log *l);

/* Open it again. The thread does so: records that came before still go to the earlier file, and so do all others if the
 * thread cannot open it, which it logs. 0 or negative: there is no memory or no thread for it. */
int event_log_reopen(struct event_log *l);

/* Use the file @path from now on; NULL: no file. It has to outlive @l. Otherwise like event_log_reopen(); nothing if
 * the path is the same. */
int event_log_follow(struct event_log *l, const char *path);

/* Behind event_log_open(): give the file to that user, before this process becomes it, as log_give() does. 0 or
 * negative errno. */
int event_log_give(const struct event_log *l, uid_t user, gid_t group);

/* Takes over @record, and adds its number as "n". Numbers begin at 1 in each process, and two processes may write one
 * file; "instance" tells them apart. */
void event_log_add(struct event_log *l, json_t *record);

/* Before @dropped is read: adds the records that the file has refused. */
void event_log_count(struct event_log *l);

/* The answer of the control API: at most @most records with numbers above @after, oldest first, the instance, and the
 * numbers of the oldest record in memory (1: none was forgotten) and of the newest. The caller owns it. */
json_t *event_log_answer(const struct event_log *l, uint64_t after, unsigned most);
