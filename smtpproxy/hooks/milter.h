/* milter.h: the conversation with a milter, of one transaction: version and options, the sender's connection, its
 * commands, and the message. Each command waits for its reply.
 */
#ifndef CSSL_SMTPPROXY_MILTER_H
#define CSSL_SMTPPROXY_MILTER_H

#include "smtpproxy/hooks/message.h"
#include "smtpproxy/hooks/milter_wire.h"

/* The parts of the dialogue, in this order. RCPT comes once for each recipient, FIELD and CHUNK until all is said. */
enum milter_part {
	MILTER_PART_OPTIONS,
	MILTER_PART_CONNECT,
	MILTER_PART_HELO,
	MILTER_PART_MAIL,
	MILTER_PART_RCPT,
	MILTER_PART_DATA,
	MILTER_PART_FIELD,
	MILTER_PART_GAP,
	MILTER_PART_CHUNK,
	MILTER_PART_END,
	MILTER_PARTS
};

#define MILTER_CHANGES_MAX 256u /* of the header */

/* Made when the milter has accepted the message, so that a milter that fails later leaves no part of them. */
struct milter_change {
	uint8_t letter; /* enum milter_reply */
	uint32_t at;
	struct smtp_span name, value; /* in @memory */
	char *memory;
};

/* Embedded; zero begins. */
struct milter {
	struct milter_options options;
	enum milter_part part; /* the next one, or the one that waits for a reply */
	enum { MILTER_SAYS, MILTER_WAITS } turn;
	size_t field, at; /* of the message: the next to be said */
	struct milter_change *changes;
	unsigned change_count;
};

#endif
