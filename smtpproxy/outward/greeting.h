/* greeting.h: the dialogue on a connection to a receiver outside of transactions: its banner, EHLO (or HELO), STARTTLS
 * and EHLO again; later EHLO with another sender's name. Bytes in, bytes out: no sockets, no clock.
 *
 *   BANNER --220--> HELLO --250--> READY --greeting_renew()--> HELLO
 *                     |  ^
 *                     |  '-- greeting_secured() -- TLS <--220-- STARTTLS
 *                     '------- offered and wanted -----------------^
 */
#pragma once

#include "conf/smtpproxy.h"
#include "proto/wire.h"
#include "smtp/domain.h"
#include "smtp/ehlo.h"
#include "smtp/reply_write.h"
#include "smtp/reply.h"

#define GREETING_LINE_MAX 1024u /* of a reply; RFC 5321 4.5.3.1.5 has 512 */
#define GREETING_OUT_MAX  (SMTP_DOMAIN_MAX + 16u)
#define GREETING_SAID_MAX 256u

enum greeting_state { GREETING_BANNER, GREETING_HELLO, GREETING_STARTTLS, GREETING_TLS, GREETING_READY, GREETING_OVER };

enum greeting_event {
	GREETING_ON_MORE,    /* all was read */
	GREETING_ON_READY,   /* a transaction may begin; @offers are the receiver's */
	GREETING_ON_TLS,     /* the handshake comes next; bytes after the 220 are an error of the receiver */
	GREETING_ON_REFUSED, /* the receiver wants no connection now: 421 or another 4xx */
	GREETING_ON_NAME, /* the receiver does not want this name; @why tells for how long. Another name may be accepted
			   */
	GREETING_ON_OVER, /* the end, because of @why: a 5xx, no TLS, or not SMTP */
};

/* Memory for the dialogue only. Most connections do without it later, and there may be thousands of them. */
struct greeting_words {
	struct smtp_ehlo offers; /* of the last EHLO */
	char line[GREETING_LINE_MAX];
	char said[GREETING_SAID_MAX]; /* the last line of the last reply, if that refused; else "" */
};

/* Embedded; zero before greeting_begin(). */
struct greeting {
	enum greeting_state state;
	enum smtpproxy_tls tls; /* above MAY: the connection has to be encrypted */
	enum smtp_own why;      /* OVER */
	uint16_t code;          /* of the last reply */
	uint8_t secured;        /* TLS is there */
	uint8_t plain_hello;    /* EHLO was not understood, so HELO was sent */
	uint32_t has;           /* SMTP_CAP_BIT()s of the last EHLO */
	char name[SMTP_DOMAIN_MAX + 1];
	struct smtp_reply_reader reader;
	struct greeting_words *words; /* NULL: behind greeting_rest() */
};

/* @name: for EHLO. 0, or CSSL_E_NO_MEMORY: there is nothing to end. */
int greeting_begin(struct greeting *g, enum smtpproxy_tls tls, struct smtp_span name);
/* Frees its memory. Legal before greeting_begin(), and twice. */
void greeting_end(struct greeting *g);

/* Reads up to the next event; *taken is the number of bytes read. Appends commands for the receiver to @out, which
 * has room for GREETING_OUT_MAX. Not in READY, TLS and OVER. */
enum greeting_event greeting_read(
	struct greeting *g, const char *in, size_t len, size_t *taken, struct wire_writer *out);

/* The words with which the receiver refused last; "": it did not, or @words are given back. */
const char *greeting_said(const struct greeting *g);

/* READY: the caller has read @words, and gives their memory back. @has stays. With XCSSLTX @words stay, because each
 * transaction needs the receiver's key. */
void greeting_rest(struct greeting *g);

/* READY: send EHLO with another name. 0, or CSSL_E_NO_MEMORY: nothing is sent. */
int greeting_renew(struct greeting *g, struct smtp_span name, struct wire_writer *out);

/* TLS: the handshake is complete; EHLO is sent again (RFC 3207 4.2). */
void greeting_secured(struct greeting *g, struct wire_writer *out);
