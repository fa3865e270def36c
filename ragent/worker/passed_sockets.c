/* passed_sockets.c: a short list. */
#include "ragent/worker/passed_sockets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/memory/array.h"
#include "net/socket/address.h"
#include "proto/error.h"

const char *passed_key_of_listener(char out[static NOTES_KEY_MAX], const char *name, const struct sockaddr *address)
{
	char text[ADDRESS_TEXT_MAX];

	snprintf(out, NOTES_KEY_MAX, "listener %s %s", name, address_format(address, text));
	return out;
}

const char *passed_key_of_path(char out[static NOTES_KEY_MAX], const char *what, const char *path)
{
	snprintf(out, NOTES_KEY_MAX, "%s %s", what, path);
	return out;
}

int passed_sockets_add(struct passed_sockets *p, const char *key, unsigned worker, int fd)
{
	int r = strlen(key) < NOTES_KEY_MAX ? 0 : CSSL_E_TOO_LONG;

	if (r == 0)
		r = array_make_room(&p->at, &p->cap, p->count, sizeof *p->at);
	if (r < 0) {
		close(fd);
		return r;
	}
	struct noted_socket *s = &p->at[p->count++];
	snprintf(s->key, sizeof s->key, "%s", key);
	s->worker = worker;
	s->fd = fd;
	return 0;
}

int passed_sockets_take(struct passed_sockets *p, const char *key, unsigned worker)
{
	for (size_t i = 0; p && i < p->count; i++) {
		struct noted_socket *s = &p->at[i];
		if (s->fd < 0 || s->worker != worker || strcmp(s->key, key) != 0)
			continue;
		int fd = s->fd;
		s->fd = -1;
		return fd;
	}
	return -1;
}

const char *passed_sockets_left(const struct passed_sockets *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->at[i].fd >= 0)
			return p->at[i].key;
	return NULL;
}

void passed_sockets_clear(struct passed_sockets *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->at[i].fd >= 0)
			close(p->at[i].fd);
	free(p->at);
	*p = (struct passed_sockets){ 0 };
}
