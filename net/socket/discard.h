/* discard.h: how long an ended connection goes on reading and dropping what its client sends. Closing it while the
 * client sends would reset the client, and the client would lose the alert or the answer that it has not read yet (RFC
 * 9112 9.6).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define DISCARD_PAUSE_MS     1000u /* without a byte from the client: close */
#define DISCARD_MS           30000u
#define DISCARD_CLIENT_MAX   (256u << 20) /* a client may send a whole upload before it reads */
#define DISCARD_STRANGER_MAX (64u << 10)  /* for one that sent something else than a handshake */

enum discard_of { DISCARD_OF_STRANGER, DISCARD_OF_CLIENT };

/* @bytes were dropped, the first of them @ms ago. 1: go on; 0: close. */
static inline bool discard_goes_on(enum discard_of who, uint64_t bytes, uint64_t ms)
{
	return bytes <= (who == DISCARD_OF_CLIENT ? DISCARD_CLIENT_MAX : DISCARD_STRANGER_MAX) && ms <= DISCARD_MS;
}

/* For a client that is one too many, and gets no time to read. Sends @words of @len bytes, and drops the bytes that
 * came. A close with unread bytes is a reset, which may overtake the words. 1: the words are sent, close @fd; 0: @len
 * is 0, or the kernel does not take them, reset @fd. */
static inline bool discard_behind_words(int fd, const void *words, size_t len)
{
	if (len == 0 || send(fd, words, len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)len)
		return false;
	recv(fd, NULL, DISCARD_STRANGER_MAX, MSG_DONTWAIT | MSG_TRUNC);
	return true;
}
