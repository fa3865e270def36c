/* service.h: how an agent treats the plaintext of a listener. Most services follow the bytes that pass in both
 * directions, and change none. A service that stands between (smtp) passes the content of mails byte for byte. But it
 * answers some commands itself, adds a parameter to others, writes some replies anew, and says commands of its own to
 * the backend. Each service knows where a checkpoint is, whether the backend connection may serve another conversation,
 * and whether an end is one that the protocol allows.
 *
 * conf/service_traits.h has the services and their traits. Each service is a folder or a file here, with one table
 * of operations (service_ops.h). Service tcp follows nothing: it is at a checkpoint only before the first byte. Any
 * other service that no longer understands the conversation gives up for good. From then on the conversation has the
 * traits of tcp, but its service may still tell the end of an answer from a cut.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "conf/service_traits.h"
#include "net/memory/slabs.h"
#include "proto/end_reason.h"
#include "proto/ids.h"

struct conf_backend;
struct conf_listener;

enum service_place {
	SERVICE_CHECKPOINT, /* every request is answered */
	SERVICE_ASKING,     /* a request was sent or waits for its answer; no byte of the response came */
	SERVICE_ANSWERING,  /* response bytes came */
	SERVICE_OPAQUE,     /* not known */
};

/* How much passed in a conversation that is not followed? */
enum service_passed {
	SERVICE_UNTOUCHED, /* no byte passed */
	SERVICE_TOUCHED,
	SERVICE_DOUBTED /* it was followed before; nobody can tell what is cut off */
};

#define SERVICE_OWN_LEN 5u

struct service {
	const struct conf_listener *listener; /* of this conversation; NULL: not known */
	uint8_t kind;                         /* enum conf_service */
	uint8_t following;                    /* enum service_following */
	uint8_t passed;                       /* enum service_passed */
	uint8_t own[SERVICE_OWN_LEN];         /* zero at first; for the service's own use while it has no state */
	void *state;                          /* the service's block; NULL: it needs none now */
	struct slabs *blocks;                 /* the slabs of @state */
};

/* The blocks of a worker for the states of its conversations, for each service. */
struct service_blocks {
	struct slabs of[CONF_SERVICE_COUNT];
};
void service_blocks_init(struct service_blocks *b);
void service_blocks_clear(struct service_blocks *b);

/* @blocks: of its worker. Call service_of_listener() next if there is a listener. The listener has to outlive @s. */
void service_init(struct service *s, enum conf_service kind, struct service_blocks *blocks);
void service_of_listener(struct service *s, const struct conf_listener *listener);
void service_destroy(struct service *s);
/* Moves the conversation of @from to @to. @from then has none. */
void service_take(struct service *to, struct service *from);

/* The traits of its row, or those of tcp after it gave up. */
static inline const struct service_traits *service_traits_now(const struct service *s)
{
	return &service_traits[s->following == SERVICE_FOLLOWED ? s->kind : CONF_TCP];
}

/* Plaintext that passes. */
void service_from_client(struct service *s, const uint8_t *data, size_t len);

/* A piece of the backend's bytes is either complete interim responses (the request then waits as before), or a part
 * of an answer. */
enum service_piece { SERVICE_INTERIM, SERVICE_RESPONSE };
enum service_piece service_from_backend(struct service *s, const uint8_t *data, size_t len);

/* Has the client still to send the rest of a request? No, where nothing is followed. */
bool service_is_being_asked(const struct service *s);

/* Follows plaintext of the client that is on its way to the backend. Returns the bytes taken: all, or those up to a
 * place where something else goes to the backend; or, TO_END, at most those of that request. @out: what goes there. */
enum service_until { SERVICE_ALL, SERVICE_TO_END };
struct service_outgoing {
	size_t len;           /* so many of the bytes that were taken, from the first on */
	const uint8_t *words; /* then these; valid until the next call */
	size_t words_len;
};
size_t service_pass(
	struct service *s, enum service_until until, const uint8_t *data, size_t len, struct service_outgoing *out);

/* The client has sent the first bytes of a request, but not the end of its head. Returns the request's number; the
 * next request has another one. 0: no such request, or nothing is followed. */
uint32_t service_head_under_way(const struct service *s);

enum service_place service_place(const struct service *s);

/* May the backend connection serve another conversation from now on: one of this client, or of any client, however
 * the backend understood this client's messages? The answer is yes only at a checkpoint. */
enum service_reuse {
	SERVICE_BACKEND_USED_UP,
	SERVICE_BACKEND_TIED, /* no: the conversation may end here in order, but cannot go on with another backend
				 connection */
	SERVICE_BACKEND_FOR_CLIENT,
	SERVICE_BACKEND_FOR_ALL
};
enum service_reuse service_backend_reuse(const struct service *s);

/* The backend ended in order (FIN). Does the protocol allow an end here, or is something cut off? */
enum service_end { SERVICE_END_WHOLE, SERVICE_END_CUT };
enum service_end service_backend_ended(struct service *s);

/* The backend's last answer is complete, whatever else the client asked. The connection only has to end. */
bool service_said_last(const struct service *s);
/* The same, and the client's further bytes are no part of a request that the backend has begun to read: they go
 * nowhere. */
bool service_takes_no_more(const struct service *s);

/* Why a conversation ends. */
enum service_parting {
	SERVICE_STAYS,        /* it does not end */
	SERVICE_LEAVES,       /* it ends in order; the client may begin another one */
	SERVICE_BACKEND_LOST, /* the backend is lost or out of reach, and no response byte was sent */
	SERVICE_HEAD_LATE,    /* the head of a request did not end in time */
	SERVICE_TRACK_LOST,   /* the service no longer understands the conversation, and must not let it pass */
	SERVICE_TIMED_OUT,
	SERVICE_OVERLOADED,
};

/* Does the conversation have to end because of what passed? */
enum service_parting service_parting(const struct service *s);

/* A new owner, before anything passed: the conversation had begun, and its backend connection is gone. */
void service_strand(struct service *s);
/* The backend connection is gone, and no other can replace it: the client's bytes go nowhere. */
bool service_is_stranded(const struct service *s);

/* Bring the conversation to its end: tell the client to send no new requests. Those that it sends all the same are
 * still answered. */
void service_wind_down(struct service *s);

/* Bytes that the agent itself sends to the client now; then the conversation goes on. *len bytes; give them to
 * service_from_backend() when they are sent. NULL: there are none, or they may not stand here. */
const char *service_words(const struct service *s, size_t *len);
/* Of the backend's next @len bytes: so many are taken, and service_words() has them, or what is said instead, when it
 * is complete. */
size_t service_hold(struct service *s, const uint8_t *data, size_t len);
/* Of its next @len bytes: how many may pass before both have to be called again. */
size_t service_until_words(const struct service *s, const uint8_t *data, size_t len);

/* The last words of an orderly end: @len bytes; 0 where the protocol needs none. NULL: there are none, and an end
 * would look like a cut. */
const char *service_last_words(const struct service *s, enum service_parting why, size_t *len);

/* Requests without an answer; 0 where nothing is followed. */
unsigned service_outstanding(const struct service *s);

/* May all requests since service_init() be asked again of a backend that may have done them already? */
enum service_repeat {
	SERVICE_REPEAT_ANY_TIME,
	SERVICE_REPEAT_IF_ALONE, /* not while the first attempt may still run */
	SERVICE_REPEAT_NEVER,
	SERVICE_REPEAT_CUTS /* never, and the protocol has no words to tell the client */
};
enum service_repeat service_repeat(const struct service *s);

/* Is one request under way, of which no byte of an answer came, and may another backend connection be asked it after
 * one that has ended? */
bool service_may_ask_again(const struct service *s);

/* Bytes of the client or the backend that the service keeps. */
size_t service_kept_len(const struct service *s);

/* Writes the state for a move in the middle of a conversation. *out is from malloc; *len is 0 where nothing is
 * known. 0 or negative. If it cannot be restored, the conversation is not followed any more. The service that is
 * restored was zeroed or initialised before: it keeps its listener. */
int service_save(const struct service *s, uint8_t **out, size_t *len);
void service_restore(
	struct service *s, enum conf_service kind, struct service_blocks *blocks, const uint8_t *state, size_t len);

/* --- answers that go on after the loss of their owner (law 10). Only service http has them (http/http_notes.c): all
 * others leave none of these notes. A service that stands between has service_note(), below. --- */

#define SERVICE_NOTE_MAX 480u /* bytes */

/* An answer begins with [data, data + len). Nothing of it was delivered, and the first @together bytes will be
 * delivered together. Returns the length of the note that a successor needs to continue it. 0: it cannot be continued,
 * or nothing will be left. */
size_t service_leave_note(
	struct service *s, const uint8_t *data, size_t len, size_t together, uint8_t out[static SERVICE_NOTE_MAX]);
/* The answer goes on with [data, data + together), which will be delivered together. Returns the length of the note
 * that replaces the one before. 0: that note still says all, or there is none. */
size_t service_leave_next_note(
	struct service *s, const uint8_t *data, size_t together, uint8_t out[static SERVICE_NOTE_MAX]);

/* A successor's knowledge of a cut answer: so many bytes of its body were delivered. */
struct service_recall {
	enum {
		SERVICE_ASKS_REST,
		SERVICE_REPEATS /* asks for the whole answer again, and compares (key `repeat_downloads`) */
	} how;
	uint64_t delivered;
	uint64_t len; /* UINT64_MAX: not known */
};

/* Made from a note and the delivered bytes of the answer. 0 and *out, to be freed by service_forget(); or negative. */
int service_recall(
	const struct service *s, const uint8_t *note, size_t len, uint64_t delivered, struct service_recall **out);
void service_forget(struct service_recall *r); /* NULL is legal */

/* The client's requests were read again: is the cut answer the only one that is due? */
bool service_can_go_on(const struct service *s);

/* Writes the request for the rest of the answer; [heard, heard + len) are the client's requests. Bytes written, or
 * negative. */
#define SERVICE_ASK_MORE 256u /* the new request may be so many bytes longer than the client's */
ptrdiff_t service_ask_rest(const struct service_recall *r, const uint8_t *heard, size_t len, uint8_t *out, size_t cap);

/* Checks the next bytes of the backend's answer to that. The first *hidden bytes were used, and are not for the client.
 * 0: the rest begins after them. SERVICE_INCOMPLETE: more bytes are needed. Negative: it is something else. */
#define SERVICE_INCOMPLETE 1
int service_is_rest(struct service *s, struct service_recall *r, const uint8_t *data, size_t len, size_t *hidden);

/* From now on the service follows the rest. */
void service_go_on(struct service *s, const struct service_recall *r);

/* --- services that stand between client and backend: they send replies of their own, and hold back bytes that
 * cannot go on yet. Only service smtp does (smtp/), so its files have these functions. The plaintext of either side
 * goes into the service; its output is for the other side.
 *
 * Such a service has a note of the whole conversation; a successor may need it at any time. The service itself finds
 * out what the loss of an owner has cut (conf/service_traits.h: SERVICE_RESOLVES_LOSS). Except for the first, call
 * these functions for such services only. --- */

static inline bool service_stands_between(const struct service *s)
{
	return service_traits_now(s)->loss == SERVICE_RESOLVES_LOSS;
}

/* The new owner of the connection, for a new or a moved conversation. */
struct service_owner {
	const struct connection_id *connection; /* for lines of the log; outlives the service; NULL: not known */
	const uint8_t *id; /* id of the connection, for the backend; len 0: the backend is not told */
	size_t id_len;
	const struct conf_backend *backend; /* of the conversation; outlives it */
	const char *client;                 /* the client's address as text; NULL: not known */
	uint16_t client_port;
	uint16_t epoch;
	uint8_t is_ipv6;
};
/* Call it before any of the others. 0 or CSSL_E_NO_MEMORY. */
int service_own(struct service *s, const struct service_owner *owner);

/* A conversation of another owner, without its backend connection. */
struct service_resumption {
	const uint8_t *note; /* len 0: there is none */
	size_t len;
	uint64_t replies;  /* records with replies for the client since the checkpoint */
	int at_checkpoint; /* 1: since then no such record was sent, and no byte of the client was consumed */
	enum {
		SERVICE_RESUME_AT_CHECKPOINT,
		SERVICE_RESUME_CUT,   /* the bytes since the checkpoint come again: service_from_client(),
					 service_heard_all() */
		SERVICE_RESUME_BLIND, /* some of these bytes are missing */
	} from;
	enum {
		SERVICE_MAY_SAY_AGAIN,
		SERVICE_SAYS_NOTHING_AGAIN, /* the same bytes may be the reason why agents are lost */
	} again;
};
/* 0; negative: no agent can continue the conversation, or send a reply in its place. */
int service_resume(struct service *s, const struct service_resumption *r);
/* All bytes that the lost owner may have used have come again. */
void service_heard_all(struct service *s);

/* The number of the record of the client's next plaintext; from 1. */
void service_at_record(struct service *s, uint64_t record);
/* Do bytes wait for a backend? */
bool service_wants_backend(const struct service *s);
/* A connection to the backend is being made. 0 or CSSL_E_NO_MEMORY. */
int service_backend_begins(struct service *s);
void service_backend_says(struct service *s, const uint8_t *data, size_t len);
/* The backend connection ended, or the backend is out of reach. */
void service_backend_gone(struct service *s);

/* The bytes for the backend. Returns how many. */
size_t service_for_backend(const struct service *s, const uint8_t **data);
void service_given_to_backend(struct service *s);
/* The next reply for the client; it is one record if it fits. 0: there is none. When it is sealed, call
 * service_from_backend(). */
size_t service_for_client(const struct service *s, const uint8_t **data);
/* The reply does not fit into one record: until the next checkpoint replies cannot be counted. */
void service_splits_reply(struct service *s);
/* How many bytes of the client were used since the last call. */
size_t service_taken(struct service *s);

/* Writes the note if it differs from the last one that was left, and remembers it as left. Returns its length; 0: it
 * is the same. */
size_t service_note(struct service *s, uint8_t out[static SERVICE_NOTE_MAX]);
/* The carrier learns that this is a checkpoint. */
void service_at_checkpoint(struct service *s);
/* At a checkpoint: may a new backend connection replace this one? */
bool service_may_begin_anew(const struct service *s);

/* Is the backend silent because it judges something that it has got completely? (service_traits.h: silence) */
bool service_awaits_verdict(const struct service *s);

/* The last words follow the others. The backend gets no more requests. */
void service_end(struct service *s, enum service_parting why);
/* Only waiting replies are still for the client. */
enum service_over { SERVICE_NOT_OVER, SERVICE_OVER, SERVICE_OVER_CUT /* the backend was in the middle of something */ };
enum service_over service_is_over(const struct service *s);
/* It is over: why the service ended it; END_DONE: the two sides did. */
enum end_reason service_over_for(const struct service *s);
