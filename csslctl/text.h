/* text.h: values of the API's JSON as text for people, safe for a terminal; and memory for a tool that runs once.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* Returns @p. If it is NULL, the process ends with a message. */
void *must(void *p);

/* printf into new memory, which the caller frees. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- text from outside: a client may offer any server name; needs a locale with UTF-8 (text_locale()) --- */

/* Set a locale with UTF-8, whatever the environment says, because the API uses UTF-8. Once in a process. */
void text_locale(void);

/* Replace control characters, those that turn the direction of text (UAX #9), and bytes that are not UTF-8 by '?', in
 * place. Returns the width of @text in columns. */
unsigned text_clean(char *text);

/* --- members by a path of names ("drain.state"), with a default if one is absent --- */

/* Owned by @object. NULL: there is none. */
json_t *member(const json_t *object, const char *path);

/* 0: there is none. */
uint64_t member_integer(const json_t *object, const char *path);
double member_real(const json_t *object, const char *path);
/* "-": there is none. */
const char *member_text(const json_t *object, const char *path);

/* --- numbers in the form that people read and type --- */

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
