/* connection_client.h: the client's side: when it is read, what it sent, its end. What it sent goes into the kept
 * records; from there connection_stream.h sends it to the owner. Reading stops while there is no room for what the
 * client sends. It also stops while the owner opens no record: what the client sends then waits in its kernel, and
 * costs neither work nor memory here.
 */
#pragma once

#include "net/points/fault.h"
#include "ragent/connection/connection_body.h"

extern const struct stream_ops connection_client_ops;

/* The stream was opened: read what comes. */
void connection_begin_reading(struct connection *c);
/* The client may send again if there is room, and its owner lets it. */
void connection_resume_reading(struct connection *c);
/* More records are kept than before: read no more than has room, or nothing. */
void connection_read_less(struct connection *c);
/* Its owner lets it wait, or go on: GOES_ON. It must have a busy part. */
void connection_set_pace(struct connection *c, enum client_pace pace);

/* Of the consumed records, keep those that may be replayed beside @more bytes that just came, and forget the others. */
void connection_trim_replay(struct connection *c, size_t more);
/* End the clients that hold back the rest of a record for too long, or while too many others do the same. */
void connection_end_partials(struct connection_home *home);

/* A point whose rules may name the client's address. Failing, the process crashes; delaying, its worker stands still.
 */
enum fault_action connection_fault_at(const struct connection *c, const char *point);

/* --- connection_arrival.c: from accept() to the agent of its handshake --- */

/* PROXY: returns how many bytes the header has; 0: it waits for more. Then, when these count as used, the client's
 * address is certain. Both may end it. */
size_t connection_take_proxy(struct connection *c, uint8_t *data, size_t len);
void connection_header_is_over(struct connection *c);

/* HELLO: its first bytes. Returns 0: it waits for more, or its state changed and the bytes are its first records; @len:
 * it has ended. */
size_t connection_take_hello(struct connection *c, uint8_t *data, size_t len);

/* WAITING: try again; @left_ms are left of the time for handshakes. */
void connection_open_again(struct connection *c, uint64_t left_ms);
/* The agent of the handshake refused it. */
void connection_open_refused(struct connection *c, Cssl__LinkRefused__Reason reason);
/* That agent is lost. At once, on another one; if that one is lost as well, a little later. */
void connection_open_anew(struct connection *c, int lost);
