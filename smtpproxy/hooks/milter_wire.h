/* milter_wire.h: the packets of the milter protocol (sendmail's libmilter, versions 2 to 6), as its client. A packet is
 * its length in 4 bytes, a letter, and the rest. Texts end with NUL. Bytes in, bytes out: no sockets.
 */
#pragma once

#include "proto/wire.h"
#include "smtp/span.h"

#define MILTER_VERSION    6u
#define MILTER_LEAST      2u
#define MILTER_PACKET_MAX 131072u /* the longest that is read */
#define MILTER_CHUNK_MAX  65535u  /* of a body */

/* Commands. Each but MACRO, ABORT and QUIT has one reply, unless the milter does not want to reply to it. */
enum milter_command {
	MILTER_OPTIONS = 'O',
	MILTER_MACRO = 'D',
	MILTER_CONNECT = 'C',
	MILTER_HELO = 'H',
	MILTER_MAIL = 'M',
	MILTER_RCPT = 'R',
	MILTER_DATA = 'T',
	MILTER_HEADER = 'L',
	MILTER_END_OF_HEADER = 'N',
	MILTER_BODY = 'B',
	MILTER_END_OF_BODY = 'E',
	MILTER_QUIT = 'Q',
};

enum milter_reply {
	MILTER_CONTINUE = 'c',
	MILTER_ACCEPT = 'a',
	MILTER_REJECT = 'r',
	MILTER_TEMPFAIL = 't',
	MILTER_DISCARD = 'd',
	MILTER_REPLY_CODE = 'y',
	MILTER_CONNECTION_FAILED = 'f',
	MILTER_SHUTDOWN = '4',
	MILTER_SKIP = 's',
	MILTER_PROGRESS = 'p',
	MILTER_ADD_HEADER = 'h',
	MILTER_INSERT_HEADER = 'i',
	MILTER_CHANGE_HEADER = 'm',
	MILTER_QUARANTINE = 'q',
	/* None of these is possible here. */
	MILTER_REPLACE_BODY = 'b',
	MILTER_CHANGE_SENDER = 'e',
	MILTER_ADD_RECIPIENT = '+',
	MILTER_ADD_RECIPIENT_PARAMS = '2',
	MILTER_DELETE_RECIPIENT = '-',
};

/* The changes that a milter may make here. */
#define MILTER_ACTIONS (0x01u | 0x10u | 0x20u) /* add fields, change fields, quarantine */

/* Of the protocol's flags, those with an effect here. NO: it does not want the command. SILENT: it sends no reply. */
enum milter_flag {
	MILTER_NO_CONNECT = 0x01,
	MILTER_NO_HELO = 0x02,
	MILTER_NO_MAIL = 0x04,
	MILTER_NO_RCPT = 0x08,
	MILTER_NO_BODY = 0x10,
	MILTER_NO_HEADER = 0x20,
	MILTER_NO_END_OF_HEADER = 0x40,
	MILTER_SILENT_HEADER = 0x80,
	MILTER_NO_UNKNOWN = 0x100,
	MILTER_NO_DATA = 0x200,
	MILTER_MAY_SKIP = 0x400,
	MILTER_SILENT_CONNECT = 0x1000,
	MILTER_SILENT_HELO = 0x2000,
	MILTER_SILENT_MAIL = 0x4000,
	MILTER_SILENT_RCPT = 0x8000,
	MILTER_SILENT_DATA = 0x10000,
	MILTER_SILENT_UNKNOWN = 0x20000,
	MILTER_SILENT_END_OF_HEADER = 0x40000,
	MILTER_SILENT_BODY = 0x80000,
	MILTER_LEADING_SPACE = 0x100000, /* values of fields come and go with the space behind the colon */
};
#define MILTER_FLAGS 0x1ff7ffu

struct milter_options {
	uint32_t version, actions, flags;
};

/* Begin a packet; its content follows by wire_put_ and milter_put_ calls, then milter_packet_end(). Returns the place
 * that the end needs. */
uint8_t *milter_packet(struct wire_writer *w, enum milter_command command);
void milter_packet_end(struct wire_writer *w, uint8_t *begin);
/* A text with its NUL; a NUL within it ends it. */
void milter_put_text(struct wire_writer *w, struct smtp_span text);

/* The next packet of @in. 1 with @letter and @rest, and its whole length in *taken; 0: more bytes are needed;
 * CSSL_E_RANGE: it is empty or too long. */
int milter_take(const uint8_t *in, size_t len, size_t *taken, uint8_t *letter, struct wire_reader *rest);

/* 0; CSSL_E_VERSION: a version that is not known; CSSL_E_TRUNCATED. @out->flags has only what was offered;
 * @out->actions all that it may do. */
int milter_read_options(struct wire_reader r, struct milter_options *out);

/* A text up to its NUL. 0 or CSSL_E_TRUNCATED. */
int milter_read_text(struct wire_reader *r, struct smtp_span *out);

/* An SMTP reply out of "550 5.7.1 Text", perhaps in several lines. Appends it with CRLF; a 421 becomes 451, because it
 * would end the session. 0; CSSL_E_RANGE: it is no reply that refuses. */
int milter_write_reply(struct wire_writer *w, struct smtp_span text);
