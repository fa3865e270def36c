/* inheritance.h: the listening sockets of a running smtpproxy, as a new process (--replace) gets them through the
 * handover socket. Both processes have them until the new one says that it is ready; no connection is refused
 * meanwhile.
 *
 *   new                          old
 *   connects              -->
 *                         <--    a message for each socket, with its descriptor; a last one without
 *   INHERITANCE_TAKEN     -->    it accepts no more; its sessions go on
 *   questions             -->    about transactions that were named there (ledger/tx_message.h)
 *                         <--    answers, and with the last session the whole ledger
 *
 * If the connection ends before that, the old process goes on as before.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define INHERITANCE_FORMAT 1u
#define INHERITANCE_TAKEN  'T'

enum inheritance_kind { INHERITANCE_END, INHERITANCE_LISTENER, INHERITANCE_CONTROL, INHERITANCE_HANDOVER };

/* The bytes of a message. */
struct inheritance_message {
	uint8_t format; /* INHERITANCE_FORMAT */
	uint8_t kind;   /* enum inheritance_kind */
	uint8_t detail; /* LISTENER: enum capture */
};

struct inheritance;

/* Ask the process that listens at @path, for at most some seconds. NULL with @error. */
struct inheritance *inheritance_take(const char *path, char *error, size_t cap);

/* The descriptor of the socket of this kind that listens at @address, which is the caller's now; -1: there is none.
 * NULL is legal, and has none. */
int inheritance_find(
	struct inheritance *in, enum inheritance_kind kind, unsigned detail, const struct sockaddr *address);

/* This process is ready: the old one accepts no more. Returns the channel to it, which is the caller's now; -1: that
 * process is gone. */
int inheritance_confirm(struct inheritance *in);

/* Closes the sockets that were not taken. NULL is legal. */
void inheritance_destroy(struct inheritance *in);
