/* handover.h: the running process gives its listening sockets to a new one (inheritance.h has the conversation). */
#ifndef CSSL_SMTPPROXY_HANDOVER_H
#define CSSL_SMTPPROXY_HANDOVER_H

#include "net/worker.h"
#include "smtpproxy/process/inheritance.h"

struct handover;

struct handover_ops {
	/* A new process asks: handover_give() each socket, from within this call. */
	void (*on_asked)(void *ctx);
	/* It has taken them. */
	void (*on_taken)(void *ctx);
};

/* Listen at @path, with mode 0600, or take over @fd (not -1), which listens there. NULL with @error. */
struct handover *handover_create(
	struct worker *w, const char *path, int fd, const struct handover_ops *ops, void *ctx, char *error, size_t cap);
void handover_give(struct handover *h, enum inheritance_kind kind, unsigned detail, int fd);
/* The listening socket, still its own. */
int handover_fd(const struct handover *h);
/* NULL is legal. The memory is freed once its handles have closed. The path stays. */
void handover_destroy(struct handover *h);

#endif
