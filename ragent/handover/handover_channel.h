/* handover_channel.h: messages over the UNIX socket between two RAgent processes. Both processes stand still while they
 * exchange a worker, so these calls block. A caller on a busy loop gives a short limit.
 */
#ifndef CSSL_RAGENT_HANDOVER_CHANNEL_H
#define CSSL_RAGENT_HANDOVER_CHANNEL_H

#include "ragent/handover/handover_message.h"

#define HANDOVER_NO_LIMIT UINT64_MAX

/* A descriptor, or a negative libuv error. */
int handover_channel_connect(const char *path);

/* 0 or negative: a libuv error (UV_ETIMEDOUT after @limit_ms, UV_EOF when the other process is gone) or CSSL_E_*. After
 * an error the channel is unusable. */
int handover_channel_send(int fd, const struct handover_message *m, uint64_t limit_ms);
/* The next message replaces the content of @m; @m owns its descriptors. UV_EMFILE: some descriptors were lost. */
int handover_channel_receive(int fd, struct handover_message *m, uint64_t limit_ms);

/* 1: the next message is there, and of @type. It stays to be received. */
int handover_channel_next_is(int fd, enum handover_type type);

/* For a process whose reader died: from now on the other process can send nothing more. 1: all that it had sent and
 * nobody read is a message of @type without bytes; 0: it is not. */
int handover_channel_ends_with(int fd, enum handover_type type);

/* Send a message whose bytes are @sentence, which may be empty. */
int handover_channel_say(int fd, enum handover_type type, const char *sentence, uint64_t limit_ms);
/* Read the sentence of such a message; @out is terminated and printable. */
void handover_sentence(const struct handover_message *m, char *out, size_t cap);

#endif
