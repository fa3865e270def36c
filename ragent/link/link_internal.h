/* link_internal.h: shared by the link's own files only: link.c (life, health, loss), link_opening.c (connect, and make
 * the opening) and link_frames.c (frames, streams, waiters).
 */
#pragma once

#include "net/loop/wheel.h"
#include "net/stream/framed.h"
#include "net/stream/streams.h"
#include "ragent/link/link.h"

struct watch;

/* Is a second connection to the agent being tried? */
enum link_second { LINK_ALONE, LINK_BESIDE };
/* Has a frame come since the link is up? */
enum link_ear { LINK_HEARD_NOTHING, LINK_HEARD };
/* A failure of a link whose agent answered on a second connection. */
#define LINK_BROKEN UV_ECONNABORTED

struct link_opening {
	struct stream stream;
	struct opening *opening; /* NULL: not connected yet */
	struct deadline deadline;
	int memory; /* made for the bytes of the link; -1: they use the socket */
	int pidfd;  /* from the agent, of its own process; -1: it sent none */
};

enum link_wish { LINK_TO_STAY, LINK_TO_WAIT, LINK_TO_GO };

struct link {
	struct link_params p;
	struct framed framed;
	struct link_opening opening;
	struct streams streams;
	struct link_waiter waiters; /* head of a ring; its next is the one that waits longest */
	struct turn_end losing;
	struct deadline connect; /* WAITING */
	struct link_hello peer;
	struct peer_process process;
	struct watch *death;       /* waits for the end of @process; NULL: nobody waits for it */
	struct deadline death_due; /* ends that wait */
	uint64_t heard_ms, ticked_ms;
	uint32_t backoff_ms;
	uint32_t next_stream;
	uint32_t cause_stream; /* whose cause came last; 0: none */
	char cause[160];
	int failure;     /* why it will be lost at the end of this turn */
	uint8_t state;   /* enum link_state */
	uint8_t fate;    /* enum peer_fate of @process */
	uint8_t wish;    /* enum link_wish */
	uint8_t second;  /* enum link_second */
	uint8_t ear;     /* enum link_ear */
	uint8_t handles; /* opening and framed: opened and not yet closed */
};

/* link.c */
/* Lose the link at the end of this turn; the first cause counts. */
void link_fail(struct link *l, int error);
/* The opening is done: @fd is the link's now. @keys are copied. */
void link_on_open(struct link *l, int fd, const struct link_keys *keys);
/* The link is connected and open: begin, or go on. */
void link_on_up(struct link *l, const struct link_hello *peer);
/* Frames came: the agent is not silent. */
void link_heard(struct link *l);
void link_handle_closed(struct link *l);

/* link_opening.c */
/* Give up after @limit_ms. 0: link_on_open() or link_fail() will come, unless closed before. Negative: nothing was
 * opened. */
int link_opening_begin(struct link *l, uint64_t limit_ms);
void link_opening_close(struct link *l);
/* SUSPECT: try a second connection, if none is tried. */
void link_try_second(struct link *l);

/* link_frames.c */
extern const struct framed_ops link_framed_ops;
/* Let waiters go on while there is room. */
void link_call_waiters(struct link *l);
/* The link is lost: forget all waiters. */
void link_forget_waiters(struct link *l);
