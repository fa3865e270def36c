/* mailbox.h: calls that other threads ask a worker for. It is all of a worker that more than one thread touches.
 * Embedded in it. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

struct worker;

struct mailbox {
	uv_async_t async;
	pthread_mutex_t lock;
	STAILQ_HEAD(, mailbox_message) messages;
	enum { MAILBOX_OPEN, MAILBOX_ENDED } state;
};

/* @on_mail runs on the loop after each message or wake, with @data as the handle's data; it empties the box. 0 or a
 * libuv error. */
int mailbox_init(struct mailbox *m, uv_loop_t *loop, uv_async_cb on_mail, void *data);
/* When no other thread knows it any more. The loop has to turn once before the memory goes. */
void mailbox_close(struct mailbox *m);

/* From any thread: @fn is called in the worker's, in the order posted. 0, or not called: CSSL_E_NO_MEMORY, CSSL_E_STATE
 * (it has ended). */
int mailbox_post(struct mailbox *m, void (*fn)(struct worker *w, void *arg), void *arg);
/* From any thread: on_mail comes. */
void mailbox_wake(struct mailbox *m);

/* The worker's thread: make the calls that were asked for. */
void mailbox_empty(struct mailbox *m, struct worker *w);
/* From here on posting is refused; unless a message came before: false. */
bool mailbox_end(struct mailbox *m);
