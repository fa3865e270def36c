/* onward.h: one connection to a receiver. Its destination opens it, greets, and leases it to one session after another;
 * a lease is one transaction.
 *
 *   CONNECTING -> GREETING <-> SHAKING          (STARTTLS)
 *                    |
 *                    v
 *                  IDLE <-> RENEWING            (EHLO with the name of the next sender)
 *                    |^
 *                    v|
 *                  LEASED
 *   GREETING, RENEWING, IDLE -> QUITTING;  every state -> CLOSING
 */
#pragma once

#include <sys/queue.h>

#include "conf/smtpproxy.h"
#include "net/stream/stream.h"
#include "smtpproxy/counters.h"
#include "smtpproxy/outward/greeting.h"
#include "smtpproxy/outward/replies.h"
#include "smtpproxy/tls/onward_tls.h"

struct destination;
struct onward;
struct want;
struct turns_sender;

/* Shared by all connections of the process. */
struct outward_home {
	struct worker *worker;
	const struct conf_smtpproxy *conf;
	struct smtpproxy_counters *counters;
	struct replies *replies;
	SSL_CTX *tls; /* NULL: TLS is used with no receiver */
	struct resolver *resolver;
};

#define ONWARD_ID_LEN 16u

/* Refusals since its last message, after which it is not leased again. Postfix delays its replies after 10 of them
 * without a message, and ends the connection after 20 (smtpd_soft_error_limit, smtpd_hard_error_limit). */
#define ONWARD_REFUSALS_MOST 5u

/* How the connections of one destination are made. */
struct onward_route {
	struct sockaddr_storage to;
	struct sockaddr_storage as; /* the sender's address, from which it comes; family 0: an address of ours */
	enum onward_head { ONWARD_BARE, ONWARD_HEADED } head; /* HEADED: a PROXY header with @unique_id comes first */
	uint8_t unique_id[ONWARD_ID_LEN];
	enum smtpproxy_tls tls;
	const char *name;          /* expected in its certificate, or NULL */
	enum dns_trust name_trust; /* of @name */
};

/* Of a connection without TLS: because of the file, or because TLS has failed (fallback.h). */
enum onward_clear { ONWARD_CLEAR_BY_FILE, ONWARD_CLEAR_BY_FALLBACK };

/* The demands of one connection on TLS. @set counts with DANE only, @name with VERIFY only. */
struct onward_demand {
	enum smtpproxy_tls tls; /* not DANE_ONLY */
	const char *name;
	struct tlsa_set *set; /* one use of it is the connection's */
	enum onward_clear clear;
};

/* Does the receiver's TLS work, by the handshake of this connection? NONE: the handshake says nothing, or it ended
 * because we had no memory. LOST: a reset, FIN, close_notify or silence ended it. FAILED: TLS itself ended it. */
enum onward_shake { ONWARD_SHAKE_NONE, ONWARD_SHAKE_WORKED, ONWARD_SHAKE_LOST, ONWARD_SHAKE_FAILED };

enum onward_refusal { ONWARD_REFUSED_BY_REPLY, ONWARD_NOT_REACHED };

/* The owner, which opened it: what happened. None of these is called before a function of onward.h returns. */
struct onward_ops {
	/* IDLE, after its greeting. */
	void (*on_ready)(struct onward *o);
	/* It failed and is CLOSING. Refused: the receiver wants no connection now, or does not answer. */
	void (*on_refused)(struct onward *o, enum onward_refusal refusal);
	void (*on_over)(struct onward *o, enum smtp_own why);
	/* The receiver does not want the name in EHLO, @o->greeting.name. The connection is QUITTING. */
	void (*on_name_refused)(struct onward *o, enum smtp_own why);
	/* It was IDLE or RENEWING, and is CLOSING or QUITTING. */
	void (*on_left)(struct onward *o);
	/* The last call: afterwards it is freed. */
	void (*on_closed)(struct onward *o);
};

/* The user that has leased it. */
struct onward_user {
	/* Plaintext of the receiver. The user takes all of it. */
	void (*on_reply)(void *ctx, const char *data, size_t len);
	/* The kernel took output. */
	void (*on_room)(void *ctx);
	/* The receiver ended, or something took too long (@why). The lease is over. */
	void (*on_lost)(void *ctx, enum smtp_own why);
};

enum onward_state {
	ONWARD_CONNECTING,
	ONWARD_GREETING,
	ONWARD_SHAKING,
	ONWARD_IDLE,
	ONWARD_RENEWING,
	ONWARD_LEASED,
	ONWARD_QUITTING,
	ONWARD_CLOSING,
};

/* Members are read by the destination; @destination, @next, @promised, @holder, @place and @age are its own. */
struct onward {
	struct stream stream;
	const struct outward_home *home;
	const struct onward_ops *ops;
	struct destination *destination;
	TAILQ_ENTRY(onward) next;
	struct want *promised;       /* RENEWING: for this want */
	struct turns_sender *holder; /* LEASED: the sender that has it */
	uint8_t place;               /* enum destination_place */
	uint32_t age;                /* the destination's age when it was opened */
	struct deadline deadline;
	const struct onward_route *route;
	struct onward_demand demand; /* set before onward_open() */
	const struct onward_user *user;
	void *user_ctx;
	struct onward_tls *tls;
	uint32_t messages; /* leases so far */
	uint32_t refusals; /* by the receiver since it took a message, counted by the user */
	uint8_t state;     /* enum onward_state */
	uint8_t shake;     /* enum onward_shake; SHAKING: what it says if it ends now */
	uint8_t taken;     /* the receiver has greeted it */
	struct greeting greeting;
	char receiver[DNS_NAME_TEXT];   /* its name, or its address, for replies_count() */
	struct smtp_reply_reader heard; /* follows all replies, to count them */
	char heard_line[64];            /* of one: enough to count it */
};

/* Connect to @route->to, from @route->as, or from @source if that is not NULL, and greet as @name. 0, or a libuv error:
 * nothing is open and the caller frees. */
int onward_open(struct onward *o, const struct outward_home *home, const struct onward_ops *ops,
	const struct onward_route *route, const struct sockaddr *source, struct smtp_span name);

/* IDLE: send EHLO with @name; on_ready follows. */
void onward_renew(struct onward *o, struct smtp_span name);

/* LEASED: another name was sent in this lease, so the next lease greets again. */
void onward_forget_name(struct onward *o);

/* IDLE: the user has it until onward_release(), onward_abort() or on_lost. */
void onward_lease(struct onward *o, const struct onward_user *user, void *ctx);

/* Between transactions, without an open command: IDLE again. The caller tells the destination. */
void onward_release(struct onward *o);

/* Within a lease: end it by a reset, so that no receiver takes a part of a message for all of it. */
void onward_abort(struct onward *o);

/* IDLE, or its name was refused: QUIT, and close. */
void onward_quit(struct onward *o);

/* In any state but LEASED: at once. */
void onward_close(struct onward *o);

/* LEASED: pass bytes on. 0; or negative, and on_lost follows. */
int onward_write(struct onward *o, const void *data, size_t len);
size_t onward_pending(const struct onward *o);
/* Bytes that the receiver's system has not confirmed, ours and those in the kernel: onward_abort() may still stop them.
 */
size_t onward_unconfirmed(const struct onward *o);

/* Mail that came with TLS must not go over it (`keep_tls`): it is in clear, and no row of the file wants it so.
 */
bool onward_is_too_clear(const struct onward *o);

/* LEASED: the receiver's next bytes are due within @ms; 0: none are due. */
void onward_expect(struct onward *o, uint32_t ms);

/* LEASED: stop reading, and go on, while the sender does not take its replies. */
void onward_pause(struct onward *o);
void onward_resume(struct onward *o);
