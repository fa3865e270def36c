/* redis_link.h: one connection to a Redis (7.0 or later) or Valkey server: connect, AUTH, pipelined requests. A part of
 * its own, because it knows RESP and nothing of a queue. Replies
 * come in the order of the requests (RESP2). libhiredis parses them; net/stream/stream.h moves the bytes, within TLS if
 * the login has a context for it.
 *
 * Embedded in its owner. All zero before redis_link_open(). Each open ends with exactly one on_lost; after it the owner
 * may open again or free.
 */
#pragma once

#include <openssl/ssl.h>
#include <openssl/types.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <hiredis/hiredis.h>

#include "net/stream/stream.h"
#include "smtpproxy/queue/backup/reply_room.h"

struct onward_tls;
struct redis_link;

struct redis_link_ops {
	/* Connected, within TLS if that is wanted, and AUTH was accepted if there is a password. */
	void (*on_ready)(struct redis_link *l);
	/* That was the answer to AUTH, or "TLS" and why it failed; on_lost follows. */
	void (*on_refused)(struct redis_link *l, const char *answer);
	/* The reply to the request of that @tag, which was sent at @sent_ms (CLOCK_BOOTTIME). @reply is gone after the
	 * call. redis_link_close() is legal inside. */
	void (*on_reply)(struct redis_link *l, uint32_t tag, int64_t sent_ms, const redisReply *reply);
	/* The connection is closed; requests without a reply may or may not have been executed. */
	void (*on_lost)(struct redis_link *l, const char *why);
};

/* The owner keeps all of it, and the address, until on_lost. @user NULL: the default user. @password NULL: no AUTH. */
struct redis_login {
	const char *user, *password;
	SSL_CTX *tls;     /* NULL: in clear */
	const char *name; /* that its certificate must have; NULL: the address */
};

enum redis_link_state {
	REDIS_LINK_IDLE,
	REDIS_LINK_CONNECTING, /* and the TLS handshake */
	REDIS_LINK_GREETING,   /* AUTH was sent */
	REDIS_LINK_READY,
	REDIS_LINK_CLOSING,
};

/* Requests without a reply: WINDOW_CALLS_MAX, and some more of a look and of heartbeats. */
#define REDIS_ASKED_MAX 512u

struct redis_request {
	uint32_t tag;
	int64_t sent_ms;
	uint64_t end; /* of its bytes, counted from the link's first */
};

struct redis_link {
	struct stream stream;
	const struct redis_link_ops *ops;
	const struct sockaddr *address; /* AF_INET, AF_INET6, AF_UNIX */
	const struct redis_login *login;
	struct onward_tls *tls; /* NULL: in clear, or not connected */
	uint8_t *plain;         /* bytes of requests for the next record; NULL: in clear */
	size_t plain_len;
	redisReader *reader;
	struct reply_room room;                      /* of the reply that comes */
	struct redis_request asked[REDIS_ASKED_MAX]; /* a ring */
	uint32_t asked_first, asked_count;
	int64_t opened_ms;
	int64_t progress_ms; /* when bytes last came, or when a part of the oldest request left */
	uint64_t said, left; /* bytes of requests; of these, bytes that the peer's kernel has */
	enum redis_link_state state;
	const char *why;
};

/* Milliseconds of CLOCK_BOOTTIME, which goes on while the machine sleeps. */
int64_t redis_link_clock_ms(void);

/* 0: on_ready or on_lost will come. Negative: libuv error or CSSL_E_NO_MEMORY, nothing is open. Only when IDLE. */
int redis_link_open(struct redis_link *l, struct worker *w, const struct redis_link_ops *ops,
	const struct redis_login *login, const struct sockaddr *address);

/* Drop the connection; @why (static text) goes to on_lost, which comes from the loop. Legal in any state, twice. */
void redis_link_close(struct redis_link *l, const char *why);

/* One request: begin with the number of its arguments, then each of them, then the tag. If memory runs out, the link
 * closes itself. Only when READY; ignored when CLOSING. */
void redis_link_begin(struct redis_link *l, unsigned arguments);
void redis_link_argument(struct redis_link *l, const void *data, size_t len);
static inline void redis_link_text(struct redis_link *l, const char *text)
{
	redis_link_argument(l, text, strlen(text));
}
void redis_link_number(struct redis_link *l, uint64_t number);
void redis_link_end(struct redis_link *l, uint32_t tag);
/* The same, with @words, which end with NULL. */
void redis_link_ask(struct redis_link *l, uint32_t tag, const char *const *words);

/* For how long the oldest request (or the connect) has waited without progress, in ms; 0: nothing waits. A large
 * request on a slow network makes progress as long as its bytes leave; bytes of later ones, as heartbeats, do not
 * count. To be called at least a few times in the time-out. */
int64_t redis_link_waits_ms(struct redis_link *l, int64_t now_ms);
