/* connection_stream.h: the streams on links that a connection has: the current one, whose frames count, and that of an
 * owner who froze it. What goes to the owner on the current stream (records, the client's end, what was received), what
 * came from it for the client, and how the same stream goes on when its link came again.
 *
 * Law 2: a new ownership is a new stream, so connection_begin_stream() is the only place that makes one.
 */
#pragma once

#include "ragent/connection/connection_body.h"

/* What its busy part has for the stream; once. */
void connection_stream_init(struct busy_part *a);

/* A new stream on @l becomes the current one. 0; or -1: there is none, and it was ended. */
int connection_begin_stream(struct connection *c, struct link *l);
/* The name of the current stream; it has one. */
static inline struct stream_name connection_stream_name(const struct connection *c)
{
	return (struct stream_name){ .boot_id = c->home->shared->boot_id,
		.id = c->now.current.stream,
		.agent = (int16_t)link_agent(c->now.current.link),
		.agent_worker = (uint16_t)link_agent_worker(c->now.current.link) };
}
void connection_release_current(struct connection *c);
/* This stream is gone with its link. true: it was the current one. */
bool connection_lose_stream(struct connection *c, const struct link *l, uint32_t stream);
/* Release that of the owner who froze it, if there is one; HEARS: by a DETACH. */
enum frozen_hears { FROZEN_HEARS, FROZEN_HEARS_NOTHING };
void connection_release_frozen(struct connection *c, enum frozen_hears hears);

/* --- to its agent --- */

/* Send all that the current stream has not got: records, then the end. */
void connection_send_records(struct connection *c);
/* It takes bytes: send the kept ones that it has not got. 0; -1: not all of them now. */
int connection_send_kept(struct connection *c, uint8_t flags);

/* What may wait a moment: usually something else is sent meanwhile anyway, or it is no longer needed. */
enum later {
	LATER_TICKETS, /* the handshake is over: its last records for the client may go with the first answer */
	LATER_FIN      /* the client's end: usually the owner ends the connection by itself */
};
void connection_say_later(struct connection *c, enum later what);

/* Send ACCEPTED: the committed records and the bytes that the client has received. */
enum accepted_when {
	ACCEPTED_NOW,
	ACCEPTED_IF_DRAINED, /* if the client has taken much since the last one */
	/* if the owner holds frames that it need not hold: */
	ACCEPTED_IF_HELD,   /* many */
	ACCEPTED_IF_ALONG,  /* some, because records go to it anyway */
	ACCEPTED_IF_SILENT, /* any, because it will be silent */
};
void connection_acknowledge(struct connection *c, enum accepted_when when);

/* --- for the client --- */

/* @len bytes more for the client are too many. true: it was ended for that. Only this stream is at fault: the others
 * on the link go on. */
bool connection_exceeds_window(struct connection *c, size_t len);
/* The payload of a frame, without bytes that the client has already. 0; negative: out of memory, and it was ended. */
int connection_pass_on(struct connection *c, const struct frame *f);

enum records_of { RECORDS_OF_CLIENT, RECORDS_OF_SERVER };
void connection_count_records(struct connection *c, enum records_of whose, const struct tls_record_run *run);

/* --- the link came again --- */

/* The owner sends its frames again, from number @next on, before which were @bytes. The client has, or will have
 * without the owner, @written bytes of this stream. */
void connection_again(struct connection *c, uint64_t next, uint64_t bytes, uint64_t written);
/* A frame of its owner. true: it had come before; the client gets those of its bytes that were lost. */
bool connection_had_frame(struct connection *c, const struct frame *f);
