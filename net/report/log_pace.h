/* log_pace.h: limits lines that strangers can cause as often as they want: LOG_PACE_PER_S in a second are written, the
 * others are counted, and a line tells how many were left out.
 *
 *     log_paced(LOG_INFO, &c->id, "handshake failed", "cause=%s", cause);
 *     info sslagent/a1: handshake failed left_out=812
 */
#pragma once

#include "net/report/log.h"

#define LOG_PACE_PER_S 10u

/* For one kind of line. All zero at first. Thread-safe. */
struct log_pace {
	_Atomic uint64_t second;
	_Atomic uint32_t written; /* in it */
	_Atomic uint64_t left_out;
	enum log_file to;
};

/* Like log_event(), but at most LOG_PACE_PER_S times a second. Before the first line of a later second, a line tells
 * how many were left out. At level debug, and in a file of its own, every line is written. */
void log_event_paced(struct log_pace *p, enum log_level level, const struct connection_id *connection,
	const char *event, const char *fields, ...) __attribute__((format(printf, 5, 6)));

/* Called by a timer: tell how many lines were left out, after their second is over. */
void log_pace_tell(struct log_pace *p, enum log_level level, const char *event);

/* Each place in the code that uses it is a kind of line. */
#define log_paced(level, connection, event, ...)                                                                       \
	do {                                                                                                           \
		static struct log_pace log_pace_here;                                                                  \
		log_event_paced(&log_pace_here, level, connection, event, __VA_ARGS__);                                \
	} while (0)
