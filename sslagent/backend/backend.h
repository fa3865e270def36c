/* backend.h: one connection to a backend (TCP or UNIX), bound to at most one client connection at a time, else waiting
 * in the worker's pool (backend_pool.h). Its socket resets instead of closing (SO_LINGER 0) until an orderly close, so
 * that a backend never takes half an upload for a whole one.
 */
#ifndef CSSL_SSLAGENT_BACKEND_H
#define CSSL_SSLAGENT_BACKEND_H

#include "conf/conf.h"
#include "net/stream.h"
#include "proto/proxy_header.h"

struct backend;

/* What the backend connections of one worker share. */
struct backend_home {
	struct worker *worker;
	const struct conf *conf;
	const struct sockaddr_storage *source; /* connect from there; ss_family 0: from any address */
};

/* Who it serves. All calls come outside backend_ calls. */
struct backend_user_ops {
	/* Plaintext came; returns how many bytes were taken. The rest waits until backend_read_on(). */
	size_t (*on_data)(void *user, uint8_t *data, size_t len);
	/* @len more bytes left for the kernel. */
	void (*on_written)(void *user, size_t len);
	/* FIN (whole) or reset, time-out, refused connect (@reason); the user closes it. */
	void (*on_end)(void *user, enum stream_end end, int uv_error);
};

/* Connect; output may be written at once. @proxy NULL: no PROXY header. NULL: out of memory or descriptors. */
struct backend *backend_connect(const struct backend_home *home, const struct conf_backend *conf,
	const struct proxy_header *proxy, const struct backend_user_ops *ops, void *user);
/* From a passed descriptor. */
struct backend *backend_open_fd(const struct backend_home *home, const struct conf_backend *conf, int fd,
	const struct backend_user_ops *ops, void *user);

/* Hand over to another user, or to nobody (the pool; data then is an error). */
void backend_bind(struct backend *b, const struct backend_user_ops *ops, void *user);

int backend_write(struct backend *b, const uint8_t *data, size_t len);
size_t backend_pending(const struct backend *b);
void backend_shutdown(struct backend *b); /* FIN after the output */
/* Reading goes on with at most @most bytes at a time. */
#define BACKEND_READ_MAX (128u * 1024u)
void backend_read_on(struct backend *b, size_t most);
void backend_read_off(struct backend *b);
void backend_read_pause(struct backend *b); /* off, with more to come at once (stream_read_pause()) */

/* Close in order, or with a reset. The user hears nothing more. */
void backend_close(struct backend *b);
void backend_reset(struct backend *b);

/* For a move, with no output pending: stop reading, and take a duplicate of the descriptor and a copy of the unread
 * input. The backend stays open and silent until backend_close_quietly() (the duplicate lives on) or backend_read_on().
 * 0 or negative. */
struct backend_half {
	int fd;
	uint8_t *unread; /* malloc'd for the caller */
	size_t unread_len;
};
int backend_take_half(struct backend *b, struct backend_half *out);
void backend_close_quietly(struct backend *b);
/* Bytes that a former reader of this connection had read and not used; delivered first. 0 or CSSL_E_NO_MEMORY. */
int backend_give_unread(struct backend *b, const uint8_t *data, size_t len);

/* It said nothing that nobody has read, and has not ended: 1 or 0. */
int backend_is_quiet(const struct backend *b);

const struct conf_backend *backend_conf(const struct backend *b);

#endif
