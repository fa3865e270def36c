/* smtp_wire.h: the connection of a mail session: a stream in clear or with TLS, which delivers and takes plaintext. TLS
 * begins at once or within the session (STARTTLS). A session embeds it as its first member.
 *
 *   CLEAR -> SHAKING -> TLS;  all -> CLOSING
 */
#pragma once

#include <openssl/ssl.h>

#include "bench/load/stream_bio.h"
#include "net/stream/stream.h"

#define SMTP_WIRE_SCRATCH_LEN 16384u

struct smtp_wire;

/* All are called from the loop. Each may close the wire. */
struct smtp_wire_ops {
	/* Plaintext. Returns how many bytes were used. If fewer than @len: the session pauses, and smtp_wire_go_on()
	 * gives it the rest; or it has just started TLS, and TLS gets the rest. */
	size_t (*on_plain)(struct smtp_wire *w, const char *data, size_t len);
	void (*on_shaken)(struct smtp_wire *w);
	/* Bytes were taken by the kernel. May be NULL. */
	void (*on_written)(struct smtp_wire *w);
	/* The peer ended it, or an error: close it. @why in a few words. */
	void (*on_end)(struct smtp_wire *w, const char *why);
	void (*on_connected)(struct smtp_wire *w, int uv_error);
	void (*on_closed)(struct smtp_wire *w);
};

enum smtp_wire_state { SMTP_WIRE_CLEAR, SMTP_WIRE_SHAKING, SMTP_WIRE_TLS, SMTP_WIRE_CLOSING };

struct smtp_wire {
	struct stream stream;
	const struct smtp_wire_ops *ops;
	SSL *ssl;               /* the session's; NULL in clear */
	struct stream_bio *bio; /* under @ssl */
	char *late;             /* plaintext of a paused session that TLS has decrypted already */
	uint32_t late_len;
	uint8_t state, paused;
	uint8_t wants_more; /* set in on_plain, in clear: the unused bytes come again, together with more */
};

/* 0 or a negative libuv error: nothing is open. */
int smtp_wire_connect(struct smtp_wire *w, struct worker *worker, const struct smtp_wire_ops *ops,
	const struct sockaddr *to, const struct sockaddr *from);
int smtp_wire_open(struct smtp_wire *w, struct worker *worker, const struct smtp_wire_ops *ops, int fd);

/* Start TLS, with an SSL object that is prepared for its side and whose BIO is @bio. Both still belong to the
 * session. A client's hello is sent at once. */
void smtp_wire_start_tls(struct smtp_wire *w, SSL *ssl, struct stream_bio *bio);

/* 0, or negative: the connection is broken, on_end comes or came. */
int smtp_wire_write(struct smtp_wire *w, const void *data, size_t len);

/* The session takes plaintext again. on_plain may be called before it returns. */
void smtp_wire_go_on(struct smtp_wire *w);

/* Closes in order: close_notify if there is TLS, and pending output if the kernel takes it. @reset: by a TCP reset,
 * which leaves no TIME_WAIT. on_closed follows. Legal in any state. */
enum smtp_wire_close { SMTP_WIRE_IN_ORDER, SMTP_WIRE_BY_RESET };
void smtp_wire_close(struct smtp_wire *w, enum smtp_wire_close how);
