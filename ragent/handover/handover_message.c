/* handover_message.c: a buffer that moves to grow, and wipes its old memory. */
#include "ragent/handover/handover_message.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "proto/error.h"

#define CAP_MIN 4096u

static void close_fds(struct handover_message *m)
{
	while (m->fds_are == HANDOVER_FDS_OWNED && m->fds_taken < m->fd_count)
		close(m->fds[m->fds_taken++]);
	m->fd_count = m->fds_taken = 0;
	m->fds_are = HANDOVER_FDS_BORROWED;
}

static void wipe(struct handover_message *m)
{
	if (m->len)
		sodium_memzero(m->data, m->len);
	m->len = 0;
}

void handover_message_begin(struct handover_message *m, enum handover_type type)
{
	close_fds(m);
	wipe(m);
	m->type = (uint8_t)type;
}

static int grow(struct handover_message *m, size_t needed)
{
	size_t cap = m->cap ? m->cap : CAP_MIN;

	while (cap < needed)
		cap *= 2;
	uint8_t *bigger = malloc(cap);
	if (!bigger)
		return CSSL_E_NO_MEMORY;
	if (m->len) {
		memcpy(bigger, m->data, m->len);
		sodium_memzero(m->data, m->len);
	}
	free(m->data);
	m->data = bigger;
	m->cap = cap;
	return 0;
}

uint8_t *handover_message_room(struct handover_message *m, size_t len)
{
	if (len > HANDOVER_LEN_MAX - m->len || (m->len + len > m->cap && grow(m, m->len + len) < 0))
		return NULL;
	m->len += len;
	return m->data + m->len - len;
}

int handover_message_put(struct handover_message *m, const void *data, size_t len)
{
	uint8_t *room = len ? handover_message_room(m, len) : NULL;

	if (len && !room)
		return CSSL_E_NO_MEMORY;
	if (len)
		memcpy(room, data, len);
	return 0;
}

void handover_message_put_fd(struct handover_message *m, int fd)
{
	assert(m->fd_count < HANDOVER_FDS_MAX);
	m->fds[m->fd_count++] = fd;
}

int handover_message_take_fd(struct handover_message *m)
{
	return m->fds_taken < m->fd_count ? m->fds[m->fds_taken++] : -1;
}

void handover_message_clear(struct handover_message *m)
{
	close_fds(m);
	wipe(m);
	free(m->data);
	*m = (struct handover_message){ 0 };
}
