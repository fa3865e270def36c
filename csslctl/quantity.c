/* quantity.c: durations are written as in the cluster file; below a second, finer. */
#include "csslctl/quantity.h"

#include <stdio.h>

#include "conf/value.h"

#define US_OF_MS 1000u
#define US_OF_S  1000000u
#define MS_OF_S  1000u

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
