/* tally.h: what became of the clients of a group, as numbers and, for the latest losses, as sentences. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "tests/lib/tlsload/histogram.h"

/* How a connection ended. X(NAME, "name") */
#define CONNECTION_ENDS(X)                                                                                             \
	X(OURS, "ours")                 /* the client was done */                                                      \
	X(REFUSED, "refused")           /* an answer said that no more follows */                                      \
	X(CLOSE_NOTIFY, "close_notify") /* at no other time than between requests is it true */                        \
	X(ALERT, "alert")               /* fatal */                                                                    \
	X(FIN, "fin")                   /* without close_notify */                                                     \
	X(RESET, "reset")                                                                                              \
	X(GARBLED, "garbled") /* no TLS that this client understands */                                                \
	X(WRONG, "wrong")     /* TLS is fine, the answer is not */                                                     \
	X(TIMEOUT, "timeout") /* no byte either way for too long */                                                    \
	X(NO_CONNECT, "no_connect")

enum connection_end {
#define X(name, text) END_##name,
	CONNECTION_ENDS(X)
#undef X
		END_COUNT
};

/* And when. */
#define CONNECTION_PLACES(X)                                                                                           \
	X(SHAKING, "shaking")       /* before the handshake was complete */                                            \
	X(IDLE, "idle")             /* everything was answered */                                                      \
	X(UNANSWERED, "unanswered") /* not a byte of the answer had come */                                            \
	X(MIDWAY, "midway")

enum connection_place {
#define X(name, text) PLACE_##name,
	CONNECTION_PLACES(X)
#undef X
		PLACE_COUNT
};

#define NOTES_MAX    40u
#define NOTE_LEN     200u
#define STATUSES_MAX 600u
#define ALERTS_MAX   256u

struct tally {
	uint64_t connected, resumed;  /* handshakes complete */
	uint64_t requests, answers;   /* answers: whole and right */
	uint64_t bytes_in, bytes_out; /* of bodies */
	uint64_t key_updates;         /* of keys_every_ms */
	uint64_t ends[END_COUNT][PLACE_COUNT];
	uint64_t statuses[STATUSES_MAX];
	uint64_t alerts[ALERTS_MAX];
	struct histogram latency;   /* request to the end of its answer */
	struct histogram first;     /* the handshake of a connection, from its connect on, and its first answer */
	struct histogram pause;     /* from a mark to the next byte of an answer */
	struct histogram pause_hit; /* the same, where the agent that the mark names had answered last */
	struct histogram apart;     /* from the loss of a connection to the next complete handshake */
	unsigned noted;             /* so many; the newest are kept */
	char notes[NOTES_MAX][NOTE_LEN];
};

void tally_note(struct tally *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *end_name(enum connection_end e);
const char *place_name(enum connection_place p);
/* Only what is not zero of the tables. New reference. */
json_t *tally_json(const struct tally *t);
