/* negative_answers.h: sessions that their origin does not have, as it said a moment ago. No handshake waits for them
 * again. Fixed size, thread-safe. */
#ifndef CSSL_SSLAGENT_NEGATIVE_ANSWERS_H
#define CSSL_SSLAGENT_NEGATIVE_ANSWERS_H

#include "proto/session_id.h"

struct negative_answers;
struct negative_answers *negative_answers_create(int64_t keep_ms);
void negative_answers_destroy(struct negative_answers *n);
void negative_answers_note(struct negative_answers *n, const uint8_t id[static SESSION_ID_LEN], int64_t now_ms);
int negative_answers_has(struct negative_answers *n, const uint8_t id[static SESSION_ID_LEN], int64_t now_ms);

#endif
