/* log_inside.h: between the files of the log. */
#ifndef CSSL_NET_LOG_INSIDE_H
#define CSSL_NET_LOG_INSIDE_H

#include <stdarg.h>

#include "net/log.h"

/* As log_event(), but whatever the level. */
void log_write_va(enum log_file to, enum log_level level, const struct connection_id *connection, const char *event,
	const char *fields, va_list args) __attribute__((format(printf, 5, 0)));
void log_write(enum log_file to, enum log_level level, const struct connection_id *connection, const char *event,
	const char *fields, ...) __attribute__((format(printf, 5, 6)));

#endif
