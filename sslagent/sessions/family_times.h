/* family_times.h: when the families of sessions that were just resumed began, to the millisecond. A SESS_OBJ tells a
 * family's age in seconds; a child made from it would be up to a second too young, and its child again. Between the
 * look-up of a session and the sharing of its child this remembers. Fixed size, thread-safe; what it forgot is known to
 * the second. */
#ifndef CSSL_SSLAGENT_FAMILY_TIMES_H
#define CSSL_SSLAGENT_FAMILY_TIMES_H

#include "proto/sess_obj.h"

struct family_times;
struct family_times *family_times_create(void);
void family_times_destroy(struct family_times *f);
void family_times_note(struct family_times *f, const uint8_t family_id[static FAMILY_ID_LEN], int64_t made_ms);
/* 1 and *made_ms, when it is remembered; 0. */
int family_times_find(struct family_times *f, const uint8_t family_id[static FAMILY_ID_LEN], int64_t *made_ms);
/* The family's beginning, given that it is about @age_s old at @now_ms. */
int64_t family_times_made(
	struct family_times *f, const uint8_t family_id[static FAMILY_ID_LEN], uint32_t age_s, int64_t now_ms);

#endif
