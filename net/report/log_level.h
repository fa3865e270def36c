/* log_level.h: which lines are written: those of a level, now and as it was configured. And in which format. Any
 * thread. */
#pragma once

#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

const char *log_level_name(enum log_level level); /* "info" */
bool log_enabled(enum log_level level);

/* Set the configured level (as log_open() does), and use it from now on. */
void log_configure_level(enum log_level level);
enum log_level log_level_configured(void);
/* At run time. */
void log_set_level(enum log_level level);
enum log_level log_level_now(void);

/* Is @word the name of a level, or "configured"? And the level that such a word means now. */
bool log_level_takes(const char *word);
enum log_level log_level_of(const char *word);
