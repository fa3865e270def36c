/* text.c: the tool and RAgent may be of different releases, so an absent member is no error. UTF-8 is judged by the C
 * library's tables. Durations are written as in the cluster file; below a second, finer.
 */
#include "csslctl/text.h"

#include <limits.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "conf/value.h"
#include "csslctl/command.h"

#define US_OF_MS 1000u
#define US_OF_S  1000000u
#define MS_OF_S  1000u

/* --- memory --- */

void *must(void *p)
{
	if (p)
		return p;
	fputs("csslctl: out of memory\n", stderr);
	exit(EXIT_REFUSED);
}

char *text_format(const char *format, ...)
{
	char *out;
	va_list arguments;

	va_start(arguments, format);
	const int len = vasprintf(&out, format, arguments);
	va_end(arguments);
	return must(len < 0 ? NULL : out);
}

/* --- text from outside --- */

void text_locale(void)
{
	setlocale(LC_CTYPE, "C.UTF-8");
}

/* It turns the direction of the text behind it, or separates lines. Control characters have no width anyway. */
static bool is_treacherous(wchar_t c)
{
	return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

unsigned text_clean(char *text)
{
	mbstate_t state = { 0 };
	unsigned columns = 0;

	while (*text != '\0') {
		wchar_t c;
		const size_t len = mbrtowc(&c, text, strlen(text), &state);
		const int width = len > MB_LEN_MAX || is_treacherous(c) ? -1 : wcwidth(c);
		if (width < 0) {
			/* A whole character above ASCII leaves bytes that are none: they come next. */
			*text++ = '?';
			columns++;
			memset(&state, 0, sizeof state);
			continue;
		}
		columns += (unsigned)width;
		text += len;
	}
	return columns;
}

/* --- members --- */

json_t *member(const json_t *object, const char *path)
{
	char name[64];

	for (;;) {
		const size_t len = strcspn(path, ".");
		snprintf(name, sizeof name, "%.*s", (int)len, path);
		object = json_object_get(object, name);
		if (!object || path[len] == '\0')
			return (json_t *)object;
		path += len + 1;
	}
}

uint64_t member_integer(const json_t *object, const char *path)
{
	const json_int_t n = json_integer_value(member(object, path));
	return n > 0 ? (uint64_t)n : 0;
}

double member_real(const json_t *object, const char *path)
{
	return json_number_value(member(object, path));
}

const char *member_text(const json_t *object, const char *path)
{
	const char *text = json_string_value(member(object, path));
	return text && *text != '\0' ? text : "-";
}

/* --- quantities --- */

static const char *scaled_text(double n, const char *unit, char out[static QUANTITY_TEXT_MAX])
{
	snprintf(out, QUANTITY_TEXT_MAX, n < 10 ? "%.1f %s" : "%.0f %s", n, unit);
	return out;
}

const char *duration_text(uint64_t us, char out[static QUANTITY_TEXT_MAX])
{
	if (us == 0)
		return "0 s";
	if (us < US_OF_MS) {
		snprintf(out, QUANTITY_TEXT_MAX, "%u us", (unsigned)us);
		return out;
	}
	if (us < US_OF_S)
		return scaled_text((double)us / US_OF_MS, "ms", out);
	if (us < 60ull * US_OF_S)
		return scaled_text((double)us / US_OF_S, "s", out);
	return value_duration_text(us / US_OF_S * MS_OF_S, out);
}

const char *size_text(double bytes, char out[static QUANTITY_TEXT_MAX])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	unsigned unit = 0;

	while (bytes >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
		bytes /= 1024;
		unit++;
	}
	if (unit > 0)
		return scaled_text(bytes, units[unit], out);
	snprintf(out, QUANTITY_TEXT_MAX, "%.0f B", bytes);
	return out;
}

const char *rate_text(double per_s, char out[static QUANTITY_TEXT_MAX])
{
	const char *format = per_s == 0 || (per_s >= 10 && per_s < 10000) ? "%.0f"
			     : per_s < 10                                 ? "%.1f"
			     : per_s < 1e6                                ? "%.1fk"
									  : "%.1fM";
	snprintf(out, QUANTITY_TEXT_MAX, format, per_s < 10000 ? per_s : per_s < 1e6 ? per_s / 1e3 : per_s / 1e6);
	return out;
}

int duration_parse(const char *text, uint32_t max_ms, uint32_t *ms)
{
	const struct schema_row row = { .min = 0, .max = max_ms };

	return value_parse(&row, SCHEMA_DURATION_MS, text, "", ms, sizeof *ms);
}
