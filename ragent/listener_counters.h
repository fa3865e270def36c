/* listener_counters.h: the counters of a listener. Each worker has a set for each listener, and only its thread writes
 * it. The control API adds the workers up when it is asked.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/report/counters.h"

/* X(name, kind, help) */
#define LISTENER_COUNTERS(X)                                                                                           \
	X(accepted, MONOTONIC, "client connections accepted")                                                          \
	X(refused, MONOTONIC,                                                                                          \
		"connections that RAgent ended before a handshake began: a limit, a PROXY header, not TLS, no "        \
		"destination")                                                                                         \
	X(handshakes_full, MONOTONIC, "full handshakes that ended well")                                               \
	X(handshakes_resumed, MONOTONIC, "handshakes that resumed a session")                                          \
	X(handshakes_failed, MONOTONIC, "handshakes that began and did not end well, whatever the reason")             \
	X(client_bytes, MONOTONIC, "record bytes from clients")                                                        \
	X(server_bytes, MONOTONIC, "record bytes committed towards clients")

struct listener_counters {
#define X(name, kind, help) counter name;
	LISTENER_COUNTERS(X)
#undef X
};

enum {
#define X(name, kind, help) LISTENER_ROW_##name,
	LISTENER_COUNTERS(X)
#undef X
		LISTENER_COUNTER_COUNT
};

/* @index: 0 to LISTENER_COUNTER_COUNT - 1. */
const struct counter_row *listener_counter_row(size_t index);
