/* end_reason.h: why a connection ended. One table feeds END, CLOSE, FINISH, the logs and the counters of both tiers.
 * The number of a row goes over links, so no row is ever taken out, and a new one comes last. Agents of the release
 * before refuse FINISH with a number that they do not know. doc/operating.md explains the rows to operators.
 */
#pragma once

#include <stdbool.h>

/* X(name, text) */
#define END_REASONS(X)                                                                                                 \
	X(DONE, "done")                   /* both sides closed in order */                                             \
	X(CLIENT_CLOSED, "client closed") /* FIN from the client before close_notify */                                \
	X(CLIENT_RESET, "client reset")                                                                                \
	X(BACKEND_CLOSED, "backend closed")                                                                            \
	X(BACKEND_RESET, "backend reset")                                                                              \
	X(BACKEND_UNREACHABLE, "backend unreachable")                                                                  \
	X(BACKEND_TIMEOUT, "backend timed out") /* no reply to the end of a mail */                                    \
	X(HANDSHAKE_FAILED, "handshake failed")                                                                        \
	X(HANDSHAKE_TIMEOUT, "handshake timed out")                                                                    \
	X(IDLE_TIMEOUT, "idle timed out")                                                                              \
	X(RECORD_VIOLATION, "record violation") /* the client broke RFC 8446 5 or RFC 5246 6 */                        \
	X(ALERT_RECEIVED, "alert received")     /* the client sent a fatal alert */                                    \
	X(RENEGOTIATION, "renegotiation refused")                                                                      \
	X(KEY_LIMIT, "key usage limit") /* TLS 1.2 has no KeyUpdate (RFC 8446 5.5) */                                  \
	X(KEY_UPDATE_FLOOD, "key update flood")                                                                        \
	X(NOT_TLS, "not TLS") /* first record was not a handshake record */                                            \
	X(PROXY_HEADER_BAD, "bad PROXY header")                                                                        \
	X(LIMIT_TOTAL, "connection limit")                                                                             \
	X(LIMIT_SOURCE, "connection limit of source")                                                                  \
	X(NO_AGENT, "no agent")                                                                                        \
	X(AGENT_LOST, "agent lost")                                                                                    \
	X(MOVE_FAILED, "move failed")                                                                                  \
	X(MOVE_UNSAFE, "move would reuse a nonce") /* law 5 */                                                         \
	X(DRAIN_TIMEOUT, "drain timed out")        /* the connection did not leave the draining agent in time */       \
	X(POISON, "its request met two losses")                                                                        \
	X(OVERLOADED, "overloaded")                                                                                    \
	X(SHUTTING_DOWN, "shutting down")                                                                              \
	X(OPERATOR, "ended by operator")                                                                               \
	X(LINK_VIOLATION, "link violation") /* the other tier broke the link protocol */                               \
	X(INTERNAL, "internal error")                                                                                  \
	X(PLAIN_HTTP, "plain HTTP") /* HTTP without TLS at a TLS listener */                                           \
	X(PROXY_HEADER_UNEXPECTED, "unexpected PROXY header")                                                          \
	X(LIMIT_HANDSHAKES, "handshake limit") /* of a worker, or of one source address there */                       \
	X(LIMIT_PREAMBLES, "preamble limit")   /* likewise, of clients before STARTTLS */                              \
	X(PREAMBLE_TIMEOUT, "preamble timed out")                                                                      \
	X(PREAMBLE_REFUSED, "preamble refused")    /* too many refused commands, or no mail client */                  \
	X(INJECTION, "bytes injected before TLS")  /* CVE-2011-0411 */                                                 \
	X(TRACK_LOST, "protocol broken")           /* what passed is no longer understood (RFC 9113 5.4.1) */          \
	X(SUSPECTED, "suspected")                  /* of crashes of RAgent; only RAgent uses it */                     \
	X(NOT_CAPTURED, "no original destination") /* the client came to the listener itself; only RAgent uses it */

enum end_reason {
#define X(name, text) END_##name,
	END_REASONS(X) END_REASON_COUNT
#undef X
};

/* The text; "unknown" for a number outside the table. */
const char *end_reason_text(unsigned reason);
/* 1: the client was not let in: a limit, or its source is suspected. Else 0. */
bool end_reason_is_refusal(unsigned reason);
