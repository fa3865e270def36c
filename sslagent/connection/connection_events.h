/* connection_events.h: all events of a connection at this agent. For each event and state, the table in
 * events/connection_reactions.c has the function of the part that reacts, or the reason why there is none.
 */
#pragma once

#include "sslagent/connection/connection.h"
#include "sslagent/tls/session_source.h"

/* X(name, text of the log) */
#define CONNECTION_EVENTS(X)                                                                                           \
	/* the carrier: connection.h has a function for each */                                                        \
	X(RECORDS, "records")                                                                                          \
	X(ACCEPTED, "accepted")                                                                                        \
	X(FIN, "fin")                                                                                                  \
	X(VIOLATION, "violation")                                                                                      \
	X(MOVE, "move")                                                                                                \
	X(GIVE_UP, "give up")                                                                                          \
	X(FORGET, "forget")                                                                                            \
	/* the handshake: the session that it waits for is here, or nowhere; the loop turn has time for it */          \
	X(PULLED, "pulled")                                                                                            \
	X(TURN, "turn")                                                                                                \
	/* the backend */                                                                                              \
	X(BACKEND_DATA, "backend data")                                                                                \
	X(BACKEND_WRITTEN, "backend written")                                                                          \
	X(BACKEND_ENDED, "backend ended")                                                                              \
	/* the connection's own: its deadline, the settling's, the target agent's answer to a pass */                  \
	X(DEADLINE, "deadline")                                                                                        \
	X(SETTLING_LATE, "settling late")                                                                              \
	X(PASSED, "passed")

enum connection_event_kind {
#define X(name, text) EVENT_##name,
	CONNECTION_EVENTS(X)
#undef X
		EVENT_COUNT
};

struct connection_event {
	enum connection_event_kind kind;
	union {
		struct {
			const struct tls_record *first;
			size_t count;
		} records; /* RECORDS */
		struct {
			uint8_t *data;
			size_t len;
			size_t used;                   /* set by the function that reacts */
		} bytes;                               /* BACKEND_DATA */
		const struct frame_accepted *accepted; /* ACCEPTED */
		const Cssl__LinkMove *move;            /* MOVE */
		enum end_reason reason;                /* GIVE_UP, FORGET */
		enum session_answer answer;            /* PULLED */
		size_t written;                        /* BACKEND_WRITTEN: bytes */
		struct {
			enum stream_end how;
			int uv_error;
		} end;     /* BACKEND_ENDED */
		int error; /* PASSED: 0 or negative */
	};
};

/* The kinds of entries in the table. */
enum connection_verdict {
	EVENT_DONE,    /* the function handles it */
	EVENT_IGNORED, /* there is nothing to do, because ... */
	EVENT_CLOSES,  /* the function ends the connection, now or after its last words, because ... */
	EVENT_NEVER    /* it cannot happen in this state, because ... */
};

typedef void connection_reaction(struct connection *c, struct connection_event *e);

struct connection_table_cell {
	connection_reaction *fn;
	const char *why; /* NULL: EVENT_DONE */
	enum connection_verdict verdict;
};

/* Also used by tests. */
extern const struct connection_table_cell connection_reactions[EVENT_COUNT][CONNECTION_STATE_COUNT];

extern const char *const connection_event_names[EVENT_COUNT];

/* For connection_home_open(). */
extern const struct connection_upward connection_upward;
