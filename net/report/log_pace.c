/* log_pace.c: a window of one second for each kind of line. Two threads at the end of a second may write one line
 * too many; but every line is written or counted.
 */
#include "net/report/log_pace.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

static uint64_t pace_now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec + 1; /* a window begins at second 0, which is long over */
}

__attribute__((format(printf, 4, 5))) static void pace_write(
	const struct log_pace *p, enum log_level level, const char *event, const char *fields, ...)
{
	va_list args;

	va_start(args, fields);
	log_write_va(p->to, level, NULL, event, fields, args);
	va_end(args);
}

static void pace_tell_left_out(struct log_pace *p, enum log_level level, const char *event)
{
	uint64_t left_out = atomic_exchange(&p->left_out, 0);

	if (left_out)
		pace_write(p, level, event, "left_out=%llu", (unsigned long long)left_out);
}

/* 1, or 0: it is left out. */
static bool pace_takes(struct log_pace *p, enum log_level level, const char *event)
{
	uint64_t second = pace_now_s();

	if (log_enabled(LOG_DEBUG) || log_is_apart(p->to))
		return true;
	if (atomic_exchange(&p->second, second) != second) {
		atomic_store(&p->written, 0);
		pace_tell_left_out(p, level, event);
	}
	if (atomic_fetch_add(&p->written, 1) < LOG_PACE_PER_S)
		return true;
	atomic_fetch_add(&p->left_out, 1);
	return false;
}

void log_event_paced(struct log_pace *p, enum log_level level, const struct connection_id *connection,
	const char *event, const char *fields, ...)
{
	va_list args;

	if (!log_takes(p->to, level) || !pace_takes(p, level, event))
		return;
	va_start(args, fields);
	log_write_va(p->to, level, connection, event, fields, args);
	va_end(args);
}

void log_pace_tell(struct log_pace *p, enum log_level level, const char *event)
{
	if (atomic_load_explicit(&p->left_out, memory_order_relaxed) && atomic_load(&p->second) != pace_now_s())
		pace_tell_left_out(p, level, event);
}
