/* quantity.h: numbers in the form that people read and type. */
#ifndef CSSL_CSSLCTL_QUANTITY_H
#define CSSL_CSSLCTL_QUANTITY_H

#include <stdint.h>

#define QUANTITY_TEXT_MAX 32u

/* "840 us", "1.2 ms", "35 ms", "2.3 s", "1min30s", "2d4h": with about two significant digits. */
const char *duration_text(uint64_t us, char out[static QUANTITY_TEXT_MAX]);

/* "912 B", "1.2 KiB", "35 MiB" */
const char *size_text(double bytes, char out[static QUANTITY_TEXT_MAX]);

/* "0", "0.4", "35", "12.3k", "1.2M" */
const char *rate_text(double per_s, char out[static QUANTITY_TEXT_MAX]);

/* "30s", "500ms", "2min": 0 and *ms, or CSSL_E_CONFIG: it is none, or more than @max_ms. */
#define DURATION_MAX_MS 86400000u
int duration_parse(const char *text, uint32_t max_ms, uint32_t *ms);

#endif
