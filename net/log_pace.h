/* log_pace.h: lines that strangers can cause as often as they like: so many a second are written, the rest is counted,
 * and a line says how many were left out.
 *
 *     log_paced(LOG_INFO, &c->id, "handshake failed", "cause=%s", cause);
 *     info sslagent/a1: handshake failed left_out=812
 */
#ifndef CSSL_NET_LOG_PACE_H
#define CSSL_NET_LOG_PACE_H

#include "net/log.h"

#define LOG_PACE_PER_S 10u

/* Of one kind of line. Zero: none was written. Thread-safe. */
struct log_pace {
	_Atomic uint64_t second;
	_Atomic uint32_t written; /* in it */
	_Atomic uint64_t left_out;
	enum log_file to;
};

/* As log_event(), but at most LOG_PACE_PER_S a second; before the first line of a later second one line says how many
 * were left out. At level debug every line is written. */
void log_event_paced(struct log_pace *p, enum log_level level, const struct connection_id *connection,
	const char *event, const char *fields, ...) __attribute__((format(printf, 5, 6)));

/* From a timer: say how many were left out, when the second in which that was is over. */
void log_pace_tell(struct log_pace *p, enum log_level level, const char *event);

/* Each place in the code is a kind of line. */
#define log_paced(level, connection, event, ...)                                                                       \
	do {                                                                                                           \
		static struct log_pace log_pace_here;                                                                  \
		log_event_paced(&log_pace_here, level, connection, event, __VA_ARGS__);                                \
	} while (0)

#endif
