/* log_line.h: the bytes of one log line, text or JSON. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "net/report/log_level.h"

#define LOG_LINE_MAX 2048u /* a pipe takes up to 4096 bytes whole or not at all */

struct log_line {
	char *out;
	size_t cap, len;
	enum log_format format;
	enum {
		LINE_WHOLE,
		LINE_CUT
	} state; /* CUT: a field did not fit; the line says that it and all later ones are left out */
};

/* @level: its name. @component may be "", @node too. @connection: 16 bytes or NULL. */
void log_line_begin(struct log_line *l, const char *level, const char *component, const char *node,
	const uint8_t *connection, const char *event);
void log_line_fields(struct log_line *l, const char *fields, va_list args);
/* The length, with the newline. */
size_t log_line_end(struct log_line *l);
