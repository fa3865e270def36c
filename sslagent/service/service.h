/* service.h: how an agent treats a listener's plaintext. A service follows the bytes that pass, both ways, and never
 * changes one; it knows where a checkpoint is, whether the backend connection may be used for another conversation, and
 * whether an end was the protocol's own.
 *
 * Which services there are, and their traits, is said in conf/service_traits.h. Each is a folder or a file here and one
 * table of operations (service_ops.h). tcp follows nothing: it is at a checkpoint only before its first byte. Another
 * service that no longer understands the conversation gives up for good: from then on the conversation has tcp's
 * traits, but its service may still tell an answer's end from a cut.
 */
#ifndef CSSL_SSLAGENT_SERVICE_H
#define CSSL_SSLAGENT_SERVICE_H

#include <stddef.h>
#include <stdint.h>

#include "conf/service_traits.h"
#include "net/slabs.h"

struct conf_listener;

enum service_place {
	SERVICE_CHECKPOINT, /* everything that was asked is answered */
	SERVICE_ASKING,     /* a request is on its way or waits for its answer; no response byte came */
	SERVICE_ANSWERING,  /* response bytes came */
	SERVICE_OPAQUE,     /* not known */
};

/* Of a conversation that is not followed. */
enum service_passed {
	SERVICE_UNTOUCHED, /* no byte passed */
	SERVICE_TOUCHED,
	SERVICE_DOUBTED /* it was followed before, and what is cut off cannot be told */
};

#define SERVICE_OWN_LEN 5u

struct service {
	const struct conf_listener *listener; /* whose conversation it is; NULL: not said */
	uint8_t kind;                         /* enum conf_service */
	uint8_t following;                    /* enum service_following */
	uint8_t passed;                       /* enum service_passed */
	uint8_t own[SERVICE_OWN_LEN];         /* zero at first; what the service keeps while it has no state */
	void *state;                          /* the service's block; NULL: it needs none now */
	struct slabs *blocks;                 /* where that is from */
};

/* A worker's blocks for the state of its conversations, for each service. */
struct service_blocks {
	struct slabs of[CONF_SERVICE_COUNT];
};
void service_blocks_init(struct service_blocks *b);
void service_blocks_clear(struct service_blocks *b);

/* @blocks: of its worker. service_of_listener() follows, where there is a listener, which outlives @s. */
void service_init(struct service *s, enum conf_service kind, struct service_blocks *blocks);
void service_of_listener(struct service *s, const struct conf_listener *listener);
void service_destroy(struct service *s);
/* @to becomes what @from is, which is left without a conversation. */
void service_take(struct service *to, struct service *from);

/* Those of its row, or of tcp when it gave up. */
static inline const struct service_traits *service_traits_now(const struct service *s)
{
	return &service_traits[s->following == SERVICE_FOLLOWED ? s->kind : CONF_TCP];
}

/* Plaintext on its way. */
void service_from_client(struct service *s, const uint8_t *data, size_t len);

/* What the backend's piece was: whole interim responses, after which the request waits for its answer as before, or
 * something of an answer. */
enum service_piece { SERVICE_INTERIM, SERVICE_RESPONSE };
enum service_piece service_from_backend(struct service *s, const uint8_t *data, size_t len);

/* Has the client still to send the rest of a request? 1 or 0; 0 where nothing is followed. */
int service_is_being_asked(const struct service *s);
/* At most to the end of that request; bytes taken. All where nothing is followed. */
size_t service_from_client_to_end(struct service *s, const uint8_t *data, size_t len);

/* The client has said the first bytes of a request and not the end of its head: the request's number, which is another
 * for the next. 0: it has not, or nothing is followed. */
uint32_t service_head_under_way(const struct service *s);

enum service_place service_place(const struct service *s);

/* May the backend connection serve another conversation from here on: of this client, or of any client, whatever the
 * backend made of this one's messages? Only ever at a checkpoint. */
enum service_reuse {
	SERVICE_BACKEND_USED_UP,
	SERVICE_BACKEND_TIED, /* no: the conversation may end here in order, but cannot go on with another one */
	SERVICE_BACKEND_FOR_CLIENT,
	SERVICE_BACKEND_FOR_ALL
};
enum service_reuse service_backend_reuse(const struct service *s);

/* The backend ended in order (FIN). Was that the protocol's end, or was something cut off? */
enum service_end { SERVICE_END_WHOLE, SERVICE_END_CUT };
enum service_end service_backend_ended(struct service *s);

/* The backend's last answer is whole, whatever else was asked; its connection has only to end. */
int service_said_last(const struct service *s);
/* Besides, what the client says now is no part of a request that the backend has begun to read: nobody takes it. */
int service_takes_no_more(const struct service *s);

/* Why a conversation ends. */
enum service_parting {
	SERVICE_STAYS,        /* it does not */
	SERVICE_LEAVES,       /* in order; the client may begin another */
	SERVICE_BACKEND_LOST, /* or out of reach, and no response byte was sent */
	SERVICE_HEAD_LATE,    /* the head of a request did not end in time */
	SERVICE_TRACK_LOST,   /* the service no longer understands it, and must not let it pass */
	SERVICE_TIMED_OUT,
	SERVICE_OVERLOADED,
};

/* Has the conversation to end, because of what passed? */
enum service_parting service_parting(const struct service *s);

/* Its backend connection is gone, and no other can take its place: nobody gets what the client says. 1 or 0. */
int service_is_stranded(const struct service *s);

/* It is to come to its end: the client is told to ask for nothing new. What it asks all the same is still answered. */
void service_wind_down(struct service *s);

/* What the agent itself says to the client now; the conversation goes on behind that. *len bytes, for
 * service_from_backend() when they are said. NULL: nothing, or not here. */
const char *service_words(const struct service *s, size_t *len);
/* Of the backend's next @len bytes, how many may pass before that has to be asked again. */
size_t service_until_words(const struct service *s, size_t len);

/* The words to end with in order: @len bytes, 0 where the protocol needs none there; NULL: it has none, and an end
 * would look like a cut. */
const char *service_last_words(const struct service *s, enum service_parting why, size_t *len);

/* Requests on their way that are not answered; 0 where nothing is followed. */
unsigned service_outstanding(const struct service *s);

/* May all that was asked since service_init() be asked again of a backend that may have done it already? */
enum service_repeat {
	SERVICE_REPEAT_ANY_TIME,
	SERVICE_REPEAT_IF_ALONE, /* not while the first attempt may still go on */
	SERVICE_REPEAT_NEVER,
	SERVICE_REPEAT_CUTS /* never, and the protocol has no words to say so */
};
enum service_repeat service_repeat(const struct service *s);

/* Bytes of the client or the backend that it keeps. */
size_t service_kept_len(const struct service *s);

/* State for a move in mid-conversation: bytes to allocate with malloc; 0 bytes where nothing is known. 0 or negative.
 * What cannot be restored is not followed. */
int service_save(const struct service *s, uint8_t **out, size_t *len);
void service_restore(
	struct service *s, enum conf_service kind, struct service_blocks *blocks, const uint8_t *state, size_t len);

/* --- answers that go on after the loss of their owner (law 10) --- */

#define SERVICE_NOTE_MAX 480u /* bytes */

/* An answer begins with [data, data + len), of which nothing was delivered; @whole bytes of it will be delivered
 * together. Bytes of the note that a successor needs to go on with it; 0: it cannot, or nothing will be left. */
size_t service_leave_note(
	const struct service *s, const uint8_t *data, size_t len, size_t whole, uint8_t out[static SERVICE_NOTE_MAX]);

/* What a successor knows of an answer that was cut: so many bytes of its body were delivered. */
struct service_recall {
	uint64_t delivered, len;
};

/* From a note, and the bytes of the answer that were delivered. 0 and *out, for service_forget(); or negative. */
int service_recall(
	const struct service *s, const uint8_t *note, size_t len, uint64_t delivered, struct service_recall **out);
void service_forget(const struct service *s, struct service_recall *r); /* NULL is legal */

/* The client's requests were heard: is the answer that was cut all that is due? 1 or 0. */
int service_can_go_on(const struct service *s);

/* Ask for the rest of it: [heard, heard + len) are the client's requests. Bytes written, or negative. */
#define SERVICE_ASK_MORE 256u /* bytes that the question may be longer than the requests */
ptrdiff_t service_ask_rest(const struct service *s, const struct service_recall *r, const uint8_t *heard, size_t len,
	uint8_t *out, size_t cap);

/* The backend's answer to that. 0: behind its first *hidden bytes, which are not for the client, the rest begins.
 * SERVICE_INCOMPLETE: more is needed to know. Negative: it is something else. */
#define SERVICE_INCOMPLETE 1
int service_is_rest(const struct service *s, struct service_recall *r, const uint8_t *data, size_t len, size_t *hidden);

/* From here on it follows the rest. */
void service_go_on(struct service *s, const struct service_recall *r);

/* --- services that stand between client and backend: they say something themselves, and hold back what they cannot
 * pass on yet. Plaintext of either side goes into the service; what comes out is for the other one.
 *
 * Such a service has a note of the whole conversation, which a successor needs at any time, and finds out itself what
 * the loss of an owner has cut (conf/service_traits.h: SERVICE_RESOLVES_LOSS). All of these are for them only, but for
 * the first. --- */

int service_stands_between(const struct service *s);

/* Who owns the connection from here on, on a new or a moved conversation. */
struct service_owner {
	const uint8_t *id; /* of the connection, as the backend is told it; len 0: it is not */
	size_t id_len;
	const char *client; /* its address, as text; NULL: not known */
	uint16_t client_port;
	uint16_t epoch;
	uint8_t is_ipv6;
};
/* 0 or CSSL_E_NO_MEMORY. Before any of the others. */
int service_own(struct service *s, const struct service_owner *owner);

/* A conversation that another owner had, and without its backend connection. */
struct service_resumption {
	const uint8_t *note; /* len 0: there is none */
	size_t len;
	uint64_t replies;  /* records with words for the client since the checkpoint */
	int at_checkpoint; /* 1: none of them, and nothing that the client said, was told since */
	enum {
		SERVICE_RESUME_AT_CHECKPOINT,
		SERVICE_RESUME_CUT,   /* from the checkpoint on it is said again: service_from_client(),
					 service_heard_all() */
		SERVICE_RESUME_BLIND, /* not all of that is there */
	} from;
	enum {
		SERVICE_MAY_SAY_AGAIN,
		SERVICE_SAYS_NOTHING_AGAIN, /* it may be what the agents are lost by */
	} again;
};
/* 0; negative: nobody can go on with it, or say anything in its place. */
int service_resume(struct service *s, const struct service_resumption *r);
/* All that the lost owner may have used has been said again. */
void service_heard_all(struct service *s);

/* The record that the next plaintext of the client is from; from 1. */
void service_at_record(struct service *s, uint64_t record);
/* Something waits for a backend. */
int service_wants_backend(const struct service *s);
/* A connection to it is on its way. 0 or CSSL_E_NO_MEMORY. */
int service_backend_begins(struct service *s);
void service_backend_says(struct service *s, const uint8_t *data, size_t len);
/* It ended, or is out of reach. */
void service_backend_gone(struct service *s);

/* What is for the backend; bytes. */
size_t service_for_backend(const struct service *s, const uint8_t **data);
void service_given_to_backend(struct service *s);
/* The next reply for the client, which is one record if it fits; 0: there is none. When it is sealed:
 * service_from_backend(). */
size_t service_for_client(const struct service *s, const uint8_t **data);
/* It does not fit into one record: until the next checkpoint replies cannot be counted. */
void service_splits_reply(struct service *s);
/* Bytes of the client that are used up since it was asked last. */
size_t service_taken(struct service *s);

/* The note, if it is another than the one left last, which it then counts as: bytes; 0: it is the same. */
size_t service_note(struct service *s, uint8_t out[static SERVICE_NOTE_MAX]);
/* The carrier hears that this is a checkpoint. */
void service_at_checkpoint(struct service *s);
/* May a new connection to the backend take the place of this one, at a checkpoint? */
int service_may_begin_anew(const struct service *s);

/* The last words go behind the others; the backend is not asked any more. */
void service_end(struct service *s, enum service_parting why);
/* Nothing but what waits is for the client any more. */
enum service_over { SERVICE_NOT_OVER, SERVICE_OVER, SERVICE_OVER_CUT /* the backend was in the midst of something */ };
enum service_over service_is_over(const struct service *s);

#endif
