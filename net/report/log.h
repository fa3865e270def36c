/* log.h: one line per event: time, level, component, connection id, verb, cause; text or JSON. Never key material.
 *
 *   2026-01-02T03:04:05.678Z info ragent/front connection 4f2a...: handed off agent=a1 to=a2 epoch=2
 *   2026-01-02T03:04:05.678Z warning sslagent/a1: peer lost peer=a2
 *
 * The calling thread formats a line and writes it by one write(2) that waits for nothing but the line of another
 * thread to the same file: when the reader of the log is stopped or the disk is full, lines are dropped and counted.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "net/report/log_level.h"
#include "proto/ids.h"

/* Where a line goes: with all other events, or into the access log (the lines of ended connections). */
enum log_file { LOG_EVENTS, LOG_ACCESS, LOG_FILE_COUNT };

/* @node "" or NULL: not shown. @path NULL: standard error. 0 or negative errno. Before this call, lines go to standard
 * error as text. */
int log_open(const char *component, const char *node, enum log_format format, enum log_level level, const char *path);
/* After log_open(): the access log is a file of its own from now on. Without it, its lines go with the other events. 0
 * or negative errno. */
int log_open_access(const char *path);
/* SIGHUP: the same paths again. 0, or negative errno (logged): that file goes on as it was, the other one is opened
 * again. */
int log_reopen(void);

/* Before root becomes that user, who could not open its files again: those that it made are given to them; those that
 * it found stay whose they are. 0 or negative errno. */
int log_give(uid_t user, gid_t group);
void log_close(void);
/* 1 when lines go to this descriptor, else 0. */
bool log_has(int fd);
/* Change to the level named @word, or for "configured" to the configured one. 0, or -1: no such word. */
int log_level_change(const char *word);
/* log_enabled() for a line of that file: an access log of its own takes lines from LOG_INFO on, whatever the level. */
bool log_takes(enum log_file to, enum log_level level);
/* 1 when the lines of that file do not stand among others, else 0. */
bool log_is_apart(enum log_file file);
/* Lines that could not be written as a whole, because a disk or the pipe of a reader was full: nothing is left of them.
 * Behind the next event that can be written, a line tells how many. */
uint64_t log_dropped(void);
/* @connection may be NULL. @event: a few lower-case words without variables ("handed off"). @fields: a printf format of
 * `key=value` pairs with spaces between; NULL: none. A value may mix text and conversions (%s %d %u %x %c, with
 * lengths, width and precision). A format of several words stands in quotation marks: `cause="no memory for %u"`. What
 * is printed is quoted and escaped where needed. In JSON each pair is a member, and a single %d or %u is a number. */
void log_event(enum log_level level, const struct connection_id *connection, const char *event, const char *fields, ...)
	__attribute__((format(printf, 4, 5)));

/* The same into that file, whatever the level: for kinds of lines that ask log_takes() before. */
void log_write_va(enum log_file to, enum log_level level, const struct connection_id *connection, const char *event,
	const char *fields, va_list args) __attribute__((format(printf, 5, 0)));
