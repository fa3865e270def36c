/* event_writer.h: writes the lines of the event log in a thread of its own, because a disk may stall: a regular file
 * has no write that does not wait. Lines are written in the order in which they came, each whole, in one write().
 *
 * The thread begins with the first line, or with the first file that it is to open: it has the user and the
 * capabilities that the process has then.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/report/log_file.h"

#define EVENT_WRITER_MAX (4u << 20) /* bytes of lines that wait */

struct event_writer;

/* NULL: out of memory. */
struct event_writer *event_writer_create(void);

/* Ends when all lines are written, or after @wait_ms. Then the thread may still wait for its disk: it ends with the
 * process, and what it uses stays. Returns the number of lines that were not written; they are not in
 * event_writer_lost(). NULL is legal. */
uint64_t event_writer_destroy(struct event_writer *w, uint64_t wait_ms);

/* Before anything else: lines go to @fd, which it takes over. */
void event_writer_begin(struct event_writer *w, int fd);

/* Opens a file for it, in the caller's thread, as log_open_file() does. A descriptor or negative errno. */
int event_writer_open_file(const char *path, enum log_origin *origin);

/* Lines from now on go to the file @path (NULL: nowhere); earlier ones go to the file before. The thread opens it,
 * because that may stall too. If it fails, the thread logs why, and lines go to the file before. 0 or negative: there
 * is no memory or no thread for it. */
int event_writer_open(struct event_writer *w, const char *path);

/* Takes over @text of malloc(), @len bytes with the line feed. 0, or negative: it was dropped, as there is no room. */
int event_writer_add(struct event_writer *w, char *text, size_t len);

/* Lines so far that a file did not take, or that had none. */
uint64_t event_writer_lost(struct event_writer *w);
