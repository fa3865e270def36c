/* connection_end.h: the end of a connection (law 8), by connection_end() (connection.h) and by these. The client gets
 * all queued bytes and FIN, or a reset, and never a FIN in the middle of something. The owner is told of every end that
 * it did not report itself. Where nobody failed (silence: connection_states.c; a stop, an operator:
 * connection_parting.c), the owner says goodbye if it can, because only it knows what is open.
 */
#pragma once

#include "proto/end_reason.h"
#include "proto/tls_record.h"

struct connection;

/* By a reset; a LINGERING one by what it has left. */
void connection_end_at_once(struct connection *c, enum end_reason reason);
/* Before the handshake is over: end it by these words of RAgent in clear, if the client has received nothing of a
 * server. Later they would contradict an agent that has keys: then, and without words, by a reset. */
void connection_end_saying(struct connection *c, enum end_reason reason, const void *words, size_t len);
/* By a fatal alert. */
void connection_refuse(struct connection *c, enum end_reason reason, enum tls_alert alert);

/* Its client gets FIN behind all bytes, if the server or its end has come and no byte is missing here. Legal twice. */
void connection_shut_if_due(struct connection *c);
/* LINGERING: bytes went to the client or came from it: check whether it may close. */
void connection_linger(struct connection *c);
/* LINGERING: discards @len bytes of the client. */
void connection_discards(struct connection *c, size_t len);

/* Forget its memory and its places on links, without a frame to the agents. */
void connection_forget_state(struct connection *c);
