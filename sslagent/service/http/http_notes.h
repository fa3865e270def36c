/* http_notes.h: service http's answers that go on after the loss of their owner: by a range of the rest (download.h),
 * or by a repetition of the whole answer (delivered.h).
 */
#ifndef CSSL_SSLAGENT_HTTP_NOTES_H
#define CSSL_SSLAGENT_HTTP_NOTES_H

#include "sslagent/service/http/http_follower.h"
#include "sslagent/service/service_ops.h"

extern const struct service_note_ops http_notes;

/* Bytes of the backend passed, and the follower has them. @answered: http_answered() before. */
void http_notes_passed(struct http_follower *h, uint32_t answered, const uint8_t *data, size_t len);

#endif
