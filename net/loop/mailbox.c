/* mailbox.c: a list under a lock, and a handle that wakes the loop. */
#include "net/loop/mailbox.h"

#include <stdlib.h>

#include "proto/error.h"

struct mailbox_message {
	STAILQ_ENTRY(mailbox_message) next;
	void (*fn)(struct worker *w, void *arg);
	void *arg;
};

int mailbox_init(struct mailbox *m, uv_loop_t *loop, uv_async_cb on_mail, void *data)
{
	int r = uv_async_init(loop, &m->async, on_mail);

	if (r < 0)
		return r;
	m->async.data = data;
	m->state = MAILBOX_OPEN;
	pthread_mutex_init(&m->lock, NULL);
	STAILQ_INIT(&m->messages);
	return 0;
}

void mailbox_close(struct mailbox *m)
{
	uv_close((uv_handle_t *)&m->async, NULL);
	pthread_mutex_destroy(&m->lock);
}

int mailbox_post(struct mailbox *m, void (*fn)(struct worker *w, void *arg), void *arg)
{
	struct mailbox_message *message = malloc(sizeof *message);
	if (!message)
		return CSSL_E_NO_MEMORY;
	*message = (struct mailbox_message){ .fn = fn, .arg = arg };

	pthread_mutex_lock(&m->lock);
	const bool is_open = m->state == MAILBOX_OPEN;
	if (is_open) {
		STAILQ_INSERT_TAIL(&m->messages, message, next);
		uv_async_send(&m->async);
	}
	pthread_mutex_unlock(&m->lock);

	if (is_open)
		return 0;
	free(message);
	return CSSL_E_STATE;
}

void mailbox_wake(struct mailbox *m)
{
	uv_async_send(&m->async);
}

void mailbox_empty(struct mailbox *m, struct worker *w)
{
	pthread_mutex_lock(&m->lock);
	struct mailbox_message *message = STAILQ_FIRST(&m->messages), *next;
	STAILQ_INIT(&m->messages);
	pthread_mutex_unlock(&m->lock);

	for (; message; message = next) {
		next = STAILQ_NEXT(message, next);
		message->fn(w, message->arg);
		free(message);
	}
}

bool mailbox_end(struct mailbox *m)
{
	pthread_mutex_lock(&m->lock);
	if (STAILQ_EMPTY(&m->messages))
		m->state = MAILBOX_ENDED;
	const bool ended = m->state == MAILBOX_ENDED;
	pthread_mutex_unlock(&m->lock);
	return ended;
}
