/* recent.h: the times of ids that were noted last: when the family of a just resumed session began, until when a
 * session that its origin does not have is asked for no more. Fixed size, thread-safe; an id may be forgotten at any
 * time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RECENT_ID_LEN 16u /* random bytes */

struct recent;
struct recent *recent_create(void);
void recent_destroy(struct recent *r);
void recent_note(struct recent *r, const uint8_t id[static RECENT_ID_LEN], int64_t at_ms);
/* Is the time remembered? Then it is *at_ms. */
bool recent_find(struct recent *r, const uint8_t id[static RECENT_ID_LEN], int64_t *at_ms);
