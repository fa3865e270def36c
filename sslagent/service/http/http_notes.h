/* http_notes.h: service http's answers that go on after the loss of their owner: by a range of the rest (download.h),
 * or by a repetition of the whole answer (delivered.h).
 */
#ifndef CSSL_SSLAGENT_HTTP_NOTES_H
#define CSSL_SSLAGENT_HTTP_NOTES_H

#include "sslagent/service/http/http_follower.h"
#include "sslagent/service/service_ops.h"

/* Bytes of the backend passed, and the follower has them. @answered: http_answered() before. */
void http_notes_passed(struct http_follower *h, uint32_t answered, const uint8_t *data, size_t len);

/* When the conversation moves, the digests of the answer under way go in front of the follower's state. Writes them to
 * @out; returns the bytes written. 0: there are none. */
#define HTTP_NOTES_STATE_MAX (1u + DELIVERED_STATE_LEN)
size_t http_notes_save(struct http_follower *h, uint8_t out[static HTTP_NOTES_STATE_MAX]);
/* How many bytes of @state are not the follower's. */
size_t http_notes_len(const uint8_t *state, size_t len);
/* Reads so many bytes. Without memory no digests are made any more, and the answer cannot go on after a loss. */
void http_notes_restore(struct http_follower *h, const uint8_t *state, size_t len);

#endif
