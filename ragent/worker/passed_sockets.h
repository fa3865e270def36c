/* passed_sockets.h: listening sockets that came from another process, until their new users take them out. A text
 * tells the use of a socket, the same in both processes: "listener sf 127.0.0.1:443", "control
 * /run/cssl/ragent.sock".
 */
#pragma once

#include <stddef.h>
#include <sys/socket.h>

#include "ragent/keeper/notes.h"

/* Embedded; zero is an empty list. */
struct passed_sockets {
	struct noted_socket *at; /* fd -1: taken */
	size_t count, cap;
};

/* For an address of a listener, as the cluster file has it; port 0 stays 0. */
const char *passed_key_of_listener(char out[static NOTES_KEY_MAX], const char *name, const struct sockaddr *address);
const char *passed_key_of_path(char out[static NOTES_KEY_MAX], const char *what, const char *path);

/* Takes over @fd. 0, CSSL_E_NO_MEMORY or CSSL_E_TOO_LONG (@fd is closed). */
int passed_sockets_add(struct passed_sockets *p, const char *key, unsigned worker, int fd);
/* The caller owns the result. -1: there is none. @p may be NULL: it has none. */
int passed_sockets_take(struct passed_sockets *p, const char *key, unsigned worker);
/* The key of a socket that was not taken; NULL: all were. */
const char *passed_sockets_left(const struct passed_sockets *p);
/* Close the sockets that were not taken. */
void passed_sockets_clear(struct passed_sockets *p);
