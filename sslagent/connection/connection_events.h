/* connection_events.h: all events of a connection at this agent, and the functions that react to them. For each
 * event and state, the table in connection_events.c has a function, or the reason why there is none.
 */
#ifndef CSSL_SSLAGENT_CONNECTION_EVENTS_H
#define CSSL_SSLAGENT_CONNECTION_EVENTS_H

#include "sslagent/connection/connection.h"
#include "net/stream.h"

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
			size_t used;                     /* set by the function that reacts */
		} bytes;                                 /* BACKEND_DATA */
		const struct frame_accepted *accepted;   /* ACCEPTED */
		const struct frame_violation *violation; /* VIOLATION */
		const Cssl__LinkMove *move;              /* MOVE */
		enum end_reason reason;                  /* GIVE_UP, FORGET */
		enum session_answer answer;              /* PULLED */
		size_t written;                          /* BACKEND_WRITTEN: bytes */
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
const struct connection_table_cell *connection_cell(enum connection_event_kind kind, enum connection_state state);

const char *connection_event_name(enum connection_event_kind kind);

/* Find the reaction and call it. May end the connection. */
void connection_happens(struct connection *c, struct connection_event *e);

/* connection.c */
connection_reaction connection_shake_hands;          /* with these records */
connection_reaction connection_shake_hands_on;       /* the loop turn has time for it */
connection_reaction connection_unpark;               /* and shakes hands on */
connection_reaction connection_take_tail_unfinished; /* of a handshake */
connection_reaction connection_abort_handshake;
connection_reaction connection_drop_unowned; /* it owns nothing */
connection_reaction connection_drop_owned;   /* others have to know where its sealing stopped */

/* connection_flow.c */
connection_reaction connection_keep_records; /* until they can be opened */
connection_reaction connection_open_records;
connection_reaction connection_hear_records;
connection_reaction connection_count_accepted; /* and do nothing else */
connection_reaction connection_go_on_serving;
connection_reaction connection_go_on_ending;
connection_reaction connection_pass_answer;
connection_reaction connection_pass_rest;   /* of an answer that was cut */
connection_reaction connection_hold_answer; /* it stays with the backend's socket */
connection_reaction connection_count_written;
connection_reaction connection_backend_took; /* and both ways go on */

/* connection_ends.c */
connection_reaction connection_keep_tail; /* until records before it are opened */
connection_reaction connection_take_tail_served;
connection_reaction connection_finish_early;
connection_reaction connection_cut_last_words;
connection_reaction connection_lose_backend;
connection_reaction connection_drop_backend;
connection_reaction connection_words_were_read;

/* connection_consumed.c */
connection_reaction connection_deadline_came;

/* connection_recover.c */
connection_reaction connection_lose_rest; /* of the answer that was cut */

/* connection_move.c */
connection_reaction connection_carry_out_move;
connection_reaction connection_refuse_move;
connection_reaction connection_pass_goes_on; /* the backend took more bytes */
connection_reaction connection_pass_is_late;
connection_reaction connection_pass_answered;
connection_reaction connection_pass_loses_backend;
connection_reaction connection_finish_passing;

/* connection_settle.c */
connection_reaction connection_settle_no_longer;

#endif
