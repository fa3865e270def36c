/* schema_rows.h: macros and words that all tables of keys use: how a row names its field, units, and words. */
#pragma once

#include "conf/schema.h"

#define FIELD(type, member) .offset = offsetof(struct type, member), .size = sizeof((struct type *)0)->member
#define ARRAY(type, member, count)                                                                                     \
	FIELD(type, member), .count_offset = offsetof(struct type, count),                                             \
			     .item_size = sizeof *((struct type *)0)->member
#define RANGE(low, high, usual) .min = low, .max = high, .fallback = usual
#define WORDS(...)                                                                                                     \
	.words = (const struct schema_word[])                                                                          \
	{                                                                                                              \
		__VA_ARGS__,                                                                                           \
		{                                                                                                      \
			NULL                                                                                           \
		}                                                                                                      \
	}
/* MAP(rows), or MAP(rows, check). */
#define MAP(...)                                                                                                       \
	.map = &(const struct schema_map)                                                                              \
	{                                                                                                              \
		__VA_ARGS__                                                                                            \
	}

#define ELEMENTS_MAX 4096 /* of a list */

#define MS       1.0
#define S        1000.0 /* in milliseconds */
#define MINUTES  (60.0 * S)
#define H        3600.0
#define D        86400.0
#define KIB      1024.0
#define MIB      1048576.0
#define TIB      1099511627776.0
#define SWITCHES .words = schema_switch_words
#define DERIVED  .derived = "derived", .fallback = "derived"

/* The keys of a program's log (struct conf_log). A table may have more of its own. */
/* clang-format off */
#define LOG_ROWS \
	{ "format", SCHEMA_WORD, FIELD(conf_log, format), WORDS({ "text", LOG_TEXT }, { "json", LOG_JSON }), \
		.fallback = "text", \
		.help = "one line for each event: as text, or as JSON" }, \
	{ "level", SCHEMA_WORD, FIELD(conf_log, level), .fallback = "info", \
		WORDS({ "debug", LOG_DEBUG }, { "info", LOG_INFO }, { "warning", LOG_WARNING }, { "error", LOG_ERROR }), \
		.help = "the lowest level of events that are written" }, \
	{ "path", SCHEMA_PATH, FIELD(conf_log, path), \
		.help = "a file to append to, opened again at SIGHUP; without this key, lines go to standard error" }
/* clang-format on */

extern const struct schema_word schema_switch_words[]; /* enum conf_switch */

/* The keys of a listener (struct conf_listener). */
extern const struct schema_row schema_listener_rows[];

/* smtpproxy's `queue` (struct smtpproxy_queue). */
extern const struct schema_map schema_smtpproxy_queue;
/* enum smtpproxy_tls, of domains and receivers; behind the first word, those of `outward` itself. */
extern const struct schema_word schema_some_tls_words[];
#define SCHEMA_OUTWARD_TLS_WORDS 1

/* Expected of a pattern of domains. */
#define SCHEMA_DOMAIN "a domain, as example.org, or *.example.org for its subdomains"
