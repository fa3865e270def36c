/* family_times.h: when the families of just resumed sessions began, in milliseconds. A SESS_OBJ gives a family's age in
 * seconds. A child made from it would seem up to a second too young, and a child of that child again. So this table
 * remembers the exact time between the look-up of a session and the sharing of its child. Fixed size, thread-safe; a
 * forgotten time is known in seconds only. */
#ifndef CSSL_SSLAGENT_FAMILY_TIMES_H
#define CSSL_SSLAGENT_FAMILY_TIMES_H

#include "proto/sess_obj.h"

struct family_times;
struct family_times *family_times_create(void);
void family_times_destroy(struct family_times *f);
void family_times_note(struct family_times *f, const uint8_t family_id[static FAMILY_ID_LEN], int64_t made_ms);
/* 1 and *made_ms when the time is remembered, else 0. */
int family_times_find(struct family_times *f, const uint8_t family_id[static FAMILY_ID_LEN], int64_t *made_ms);
/* The family's beginning: remembered, or estimated from its age @age_s at @now_ms. */
int64_t family_times_made(
	struct family_times *f, const uint8_t family_id[static FAMILY_ID_LEN], uint32_t age_s, int64_t now_ms);

#endif
