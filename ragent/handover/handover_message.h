/* handover_message.h: the messages between an RAgent process and the one that replaces it. A message has a type, bytes,
 * and descriptors. The bytes may hold keys, so every buffer is wiped.
 *
 * The new process connects to the handover socket of the old one; both read the same types:
 *
 *     new                                    old
 *     HELLO    the formats it reads    -->
 *                                      <--   OFFER    its name, workers, agents, listeners, links
 *                                      <--   SOCKETS  listening sockets, never bound again; several messages
 *     TAKE     the next worker         -->            or REFUSED: the old process goes on as before
 *                                      <--   WORKER, LINK, CONNECTIONS ...   the worker stands still meanwhile
 *     TAKEN    after each of them      -->            or REFUSED: the old worker goes on
 *                                      <--   COMMIT   from here on the sockets are the new process's
 *     TAKE     the next one ...        -->
 *     DONE     no worker is left       -->            the old process serves no more, closes, and ends
 *
 * Before COMMIT the new process neither reads nor writes any of the sockets; after COMMIT the old process does not.
 * Either process breaks off by closing the handover connection.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The latest format that this release reads. It writes the latest one that the new process reads too. */
#define HANDOVER_FORMAT     1u
#define HANDOVER_FORMAT_MIN 1u

#define HANDOVER_FDS_MAX 250u                   /* the kernel passes 253 at once */
#define HANDOVER_LEN_MAX (256u * 1024u * 1024u) /* one connection can hold tens of megabytes */

enum handover_type {
	HANDOVER_HELLO = 1,
	HANDOVER_OFFER,
	HANDOVER_SOCKETS,
	HANDOVER_REFUSED, /* a sentence */
	HANDOVER_TAKE,
	HANDOVER_WORKER,
	HANDOVER_LINK,
	HANDOVER_CONNECTIONS,
	HANDOVER_TAKEN,
	HANDOVER_COMMIT,
	HANDOVER_DONE,
	HANDOVER_TYPE_END,
};

/* Zero before use. */
struct handover_message {
	uint8_t type; /* enum handover_type */
	uint8_t *data;
	size_t len, cap;
	enum { HANDOVER_FDS_BORROWED, HANDOVER_FDS_OWNED } fds_are; /* OWNED: closed unless taken out */
	int fds[HANDOVER_FDS_MAX];
	unsigned fd_count, fds_taken;
};

/* Empty the message and begin a new one; the buffer stays. */
void handover_message_begin(struct handover_message *m, enum handover_type type);
/* Room for @len more bytes, which the caller fills. NULL: out of memory, or HANDOVER_LEN_MAX. */
uint8_t *handover_message_room(struct handover_message *m, size_t len);
/* 0 or CSSL_E_NO_MEMORY. */
int handover_message_put(struct handover_message *m, const void *data, size_t len);
void handover_message_put_fd(struct handover_message *m, int fd);
/* Take the next descriptor, owned by the caller; -1: no more. */
int handover_message_take_fd(struct handover_message *m);
/* A field (proto/fields.h) whose value is the @front and then the text, which may be NULL. 0 or CSSL_E_NO_MEMORY. */
int handover_message_put_field(
	struct handover_message *m, uint16_t tag, const void *front, size_t front_len, const char *text);
/* Wipe, free, close. */
void handover_message_clear(struct handover_message *m);

/* --- over the UNIX socket --- */

/* Both processes stand still while they exchange a worker, so these calls block. A caller on a busy loop gives a short
 * limit. */
#define HANDOVER_NO_LIMIT UINT64_MAX

/* A descriptor, or a negative libuv error. */
int handover_channel_connect(const char *path);

/* 0 or negative: a libuv error (UV_ETIMEDOUT after @limit_ms, UV_EOF when the other process is gone) or CSSL_E_*. After
 * an error the channel is unusable. */
int handover_channel_send(int fd, const struct handover_message *m, uint64_t limit_ms);
/* The next message replaces the content of @m; @m owns its descriptors. UV_EMFILE: some descriptors were lost. */
int handover_channel_receive(int fd, struct handover_message *m, uint64_t limit_ms);

/* Until a message is there, or the other process is gone. */
void handover_channel_await(int fd);
/* Is the next message there, and of @type? It stays to be received. */
bool handover_channel_next_is(int fd, enum handover_type type);

/* For a process whose reader died: from now on the other process can send nothing more. True: all that it had sent and
 * nobody read is a message of @type without bytes. */
bool handover_channel_ends_with(int fd, enum handover_type type);

/* Send a message whose bytes are @sentence, which may be empty. */
int handover_channel_say(int fd, enum handover_type type, const char *sentence, uint64_t limit_ms);
/* Read the sentence of such a message; @out is terminated and printable. */
void handover_sentence(const struct handover_message *m, char *out, size_t cap);
