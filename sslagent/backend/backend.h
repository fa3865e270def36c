/* backend.h: one connection to a backend (TCP or UNIX). It serves at most one client connection at a time. A free
 * one waits in the worker's pool (backend_pool.h). Until an orderly close, its socket resets when it closes
 * (SO_LINGER 0): so a backend never takes half an upload for a whole one.
 */
#pragma once

#include <stdatomic.h>

#include "conf/conf.h"
#include "net/memory/slabs.h"
#include "net/stream/stream.h"
#include "proto/proxy_header.h"

struct backend;

/* What is known of a backend. All workers of a process share it. */
struct backend_state {
	_Atomic int failure; /* libuv error of the last attempt to connect; 0: it answered, or nobody asked */
	_Atomic uint64_t failed_ms;
};

/* Writes name, address and error of each backend whose last attempt failed less than BACKENDS_FAIL_FOR_MS ago: after
 * that it is not known. 1: the last attempt at each one failed, at some of them so recently. Else 0. Those of the
 * control API do not count. */
#define BACKENDS_TEXT_MAX    256u
#define BACKENDS_FAIL_FOR_MS 30000u
bool backends_failing(const struct backend_state *states, const struct conf *conf, uint64_t now_ms,
	char out[static BACKENDS_TEXT_MAX]);

/* Did this process lack what a connection takes: descriptors, memory, a free port? Then it asked no backend. */
bool backend_is_own_lack(int uv_error);

/* All backend connections of one worker share this. It outlives them. */
struct backend_home {
	struct worker *worker;
	const struct conf *conf;
	const struct sockaddr_storage *source; /* the source address of connections; ss_family 0: any */
	struct backend_state *states;          /* of each backend of the file */
	struct slabs blocks;                   /* of the connections */
};

void backend_home_open(struct backend_home *home, struct worker *worker, const struct conf *conf,
	const struct sockaddr_storage *source, struct backend_state *states);
void backend_home_release(struct backend_home *home); /* after the end of the worker's thread */

/* The user of a backend connection. No call of a backend_ function makes one of these calls before it returns. */
struct backend_user_ops {
	/* Plaintext came. Returns how many bytes the user took. The rest waits until backend_read_on(). */
	size_t (*on_data)(void *user, uint8_t *data, size_t len);
	/* The kernel took @len more bytes. */
	void (*on_written)(void *user, size_t len);
	/* The backend ended the connection: FIN (whole), or reset, time-out, refused connect (@reason). The user
	 * closes it. */
	void (*on_end)(void *user, enum stream_end end, int uv_error);
	/* Bytes are about to be read: what they need can be fetched into the cache. May be NULL. */
	void (*foresee)(const void *user);
};

/* Connect. The user may write at once. @proxy NULL: send no PROXY header. Returns NULL (logged) when out of
 * memory or descriptors, or without the source address. */
struct backend *backend_connect(struct backend_home *home, const struct conf_backend *conf,
	const struct proxy_header *proxy, const struct backend_user_ops *ops, void *user);
/* Make a connection from a passed descriptor. */
struct backend *backend_open_fd(struct backend_home *home, const struct conf_backend *conf, int fd,
	const struct backend_user_ops *ops, void *user);

/* Give the connection to another user, or to none (in the pool, where data is an error). */
void backend_bind(struct backend *b, const struct backend_user_ops *ops, void *user);

int backend_write(struct backend *b, const uint8_t *data, size_t len);
size_t backend_pending(const struct backend *b);
void backend_shutdown(struct backend *b); /* FIN after the output */
/* Continue to read, at most @most bytes at a time. */
#define BACKEND_READ_MAX (128u * 1024u)
void backend_read_on(struct backend *b, size_t most);
void backend_read_off(struct backend *b);
void backend_read_pause(struct backend *b); /* stop reading although more comes at once (stream_read_pause()) */

/* Close in order, or with a reset. The user gets no more calls. */
void backend_close(struct backend *b);
void backend_reset(struct backend *b);

/* Prepare a move; no output may be pending. Reading stops, and *half gets a duplicate of the descriptor and a copy
 * of the unread input. The backend connection stays open and silent until backend_close_quietly() (the duplicate
 * lives on) or backend_read_on(). 0 or negative. */
struct backend_half {
	int fd;
	uint8_t *unread; /* from malloc; the caller frees it */
	size_t unread_len;
};
int backend_take_half(struct backend *b, struct backend_half *out);
void backend_close_quietly(struct backend *b);
/* Give back bytes that an earlier reader of this connection had read and not used. They are delivered first. 0 or
 * CSSL_E_NO_MEMORY. */
int backend_give_unread(struct backend *b, const uint8_t *data, size_t len);

/* For @n of them, at most BACKENDS_ASKED_MAX: *quiet gets a bit for each (the first: bit 0) from which no unread byte
 * has come and which has not ended. */
#define BACKENDS_ASKED_MAX STREAM_ASKED_MAX
void backends_are_quiet(struct backend *const *backends, unsigned n, uint64_t *quiet);

const struct conf_backend *backend_conf(const struct backend *b);
