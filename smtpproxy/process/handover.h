/* handover.h: the running process gives its listening sockets to a new one (inheritance.h has the conversation). */
#pragma once

#include "net/stream/stream.h"
#include "smtpproxy/process/inheritance.h"
#include "smtpproxy/sender/session_tx.h"

struct handover;

struct handover_ops {
	/* A new process asks: handover_give() each socket, from within this call. */
	void (*on_asked)(void *ctx);
	/* It has taken them. The path is closed here. */
	void (*on_taken)(void *ctx);
	/* It asks about a transaction. */
	void (*on_question)(void *ctx, const struct tx_message *m);
	/* It has ended, and asks no more. */
	void (*on_left)(void *ctx);
};

/* Listen at @path, with mode 0600, or take over @fd (not -1), which listens there. NULL with @error. */
struct handover *handover_create(
	struct worker *w, const char *path, int fd, const struct handover_ops *ops, void *ctx, char *error, size_t cap);
void handover_give(struct handover *h, enum inheritance_kind kind, unsigned detail, int fd);
/* The listening socket, still its own. */
int handover_fd(const struct handover *h);
/* The way to the new process, behind on_taken; NULL: there is none, or not any more. */
const struct remote_channel *handover_channel(const struct handover *h);
/* NULL is legal. What was written for the new process still goes out. The memory is freed once its handles have closed.
 * The path stays. */
void handover_destroy(struct handover *h);

/* The other side: the channel to the process that this one has replaced, as long as that one has sessions. */

/* Embedded; all zero before. */
struct predecessor {
	struct stream stream;
	struct tx_before *before;
};

/* Takes over @fd. A failure means that no question can be asked, and is logged. */
void predecessor_open(struct predecessor *p, struct worker *w, int fd, struct tx_before *before);
void predecessor_close(struct predecessor *p); /* legal when it is not open */
