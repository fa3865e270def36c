/* received.h: the Received field of a message that the queue takes (RFC 5321 4.4, RFC 3848). */
#ifndef CSSL_SMTPPROXY_RECEIVED_H
#define CSSL_SMTPPROXY_RECEIVED_H

#include <stddef.h>
#include <sys/socket.h>
#include <time.h>

#define RECEIVED_MAX 1024u

struct received {
	const char *hello;             /* the sender's name for itself; any text */
	const struct sockaddr *client; /* an IP address */
	const char *by, *id;           /* this host; a word that names the message */
	const char *with;              /* the protocol, as "ESMTPS" */
	time_t time;
};

/* Returns its length, with the CRLF at its end. */
size_t received_write(const struct received *r, char out[static RECEIVED_MAX]);

#endif
