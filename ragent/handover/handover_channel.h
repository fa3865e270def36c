/* handover_channel.h: messages over the UNIX socket between two RAgent processes. Both stand still while they exchange
 * a worker, so these calls block: a caller on a loop that has something else to do gives a short limit.
 */
#ifndef CSSL_RAGENT_HANDOVER_CHANNEL_H
#define CSSL_RAGENT_HANDOVER_CHANNEL_H

#include "ragent/handover/handover_message.h"

#define HANDOVER_NO_LIMIT UINT64_MAX

/* A descriptor, or a negative libuv error. */
int handover_channel_connect(const char *path);

/* 0 or negative: a libuv error (UV_ETIMEDOUT after @limit_ms, UV_EOF when the other process is gone) or CSSL_E_*. The
 * channel is of no use afterwards. */
int handover_channel_send(int fd, const struct handover_message *m, uint64_t limit_ms);
/* The next message replaces what @m had; its descriptors are owned. UV_EMFILE: some of them were lost. */
int handover_channel_receive(int fd, struct handover_message *m, uint64_t limit_ms);

/* A message that is a sentence, or nothing. */
int handover_channel_say(int fd, enum handover_type type, const char *sentence, uint64_t limit_ms);
/* Of such a message; @out is terminated, and printable. */
void handover_sentence(const struct handover_message *m, char *out, size_t cap);

#endif
