/* log_level.c: two atomic levels, which any thread reads and writes. */
#include "net/report/log_level.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define BACK_WORD "configured"

static const char *const level_names[] = {
	[LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARNING] = "warning", [LOG_ERROR] = "error"
};

#define LEVEL_COUNT (sizeof level_names / sizeof level_names[0])

/* The lowest level that is written: the configured one, until it is changed at run time. */
static _Atomic int level_now = LOG_INFO, level_configured = LOG_INFO;

const char *log_level_name(enum log_level level)
{
	return level_names[level];
}

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&level_now, (int)level, memory_order_relaxed);
}

void log_configure_level(enum log_level level)
{
	atomic_store_explicit(&level_configured, (int)level, memory_order_relaxed);
	log_set_level(level);
}

enum log_level log_level_now(void)
{
	return (enum log_level)atomic_load_explicit(&level_now, memory_order_relaxed);
}

enum log_level log_level_configured(void)
{
	return (enum log_level)atomic_load_explicit(&level_configured, memory_order_relaxed);
}

bool log_enabled(enum log_level level)
{
	return level >= log_level_now();
}

static size_t level_find(const char *word)
{
	size_t i = 0;

	while (i < LEVEL_COUNT && strcmp(level_names[i], word) != 0)
		i++;
	return i;
}

bool log_level_takes(const char *word)
{
	return strcmp(word, BACK_WORD) == 0 || level_find(word) < LEVEL_COUNT;
}

enum log_level log_level_of(const char *word)
{
	const size_t found = level_find(word);

	return found < LEVEL_COUNT ? (enum log_level)found : log_level_configured();
}
