/* log_level.c: the lowest level that is written: the configured one, until it is changed at run time. */
#include <stdatomic.h>
#include <string.h>

#include "net/log.h"

#define BACK_WORD "configured"

static const char *const names[] = {
	[LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARNING] = "warning", [LOG_ERROR] = "error"
};

#define LEVEL_COUNT (sizeof names / sizeof names[0])

static _Atomic int now = LOG_INFO, configured = LOG_INFO;

const char *log_level_name(enum log_level level)
{
	return names[level];
}

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&now, (int)level, memory_order_relaxed);
}

void log_configure_level(enum log_level level)
{
	atomic_store_explicit(&configured, (int)level, memory_order_relaxed);
	log_set_level(level);
}

enum log_level log_level_now(void)
{
	return (enum log_level)atomic_load_explicit(&now, memory_order_relaxed);
}

enum log_level log_level_configured(void)
{
	return (enum log_level)atomic_load_explicit(&configured, memory_order_relaxed);
}

int log_enabled(enum log_level level)
{
	return level >= log_level_now();
}

static size_t find(const char *word)
{
	size_t i = 0;

	while (i < LEVEL_COUNT && strcmp(names[i], word) != 0)
		i++;
	return i;
}

int log_level_takes(const char *word)
{
	return strcmp(word, BACK_WORD) == 0 || find(word) < LEVEL_COUNT;
}

/* Written under the lower one of both levels: nobody hides warnings unseen. */
int log_level_change(const char *word)
{
	const size_t found = find(word);
	const enum log_level level = found < LEVEL_COUNT ? (enum log_level)found : log_level_configured();

	if (!log_level_takes(word))
		return -1;
	if (level < log_level_now())
		log_set_level(level);
	log_event(LOG_WARNING, NULL, "log level changed", "level=%s", log_level_name(level));
	log_set_level(level);
	return 0;
}
