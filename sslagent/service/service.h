/* service.h: how an agent treats a listener's plaintext. A service follows what passes, both ways, and never changes a
 * byte; it knows where a checkpoint is, whether the backend connection may be used for another conversation, and
 * whether an end was the protocol's own.
 *
 * tcp knows nothing: it is at a checkpoint only before its first byte. http follows HTTP/1.1 message boundaries
 * (http_follower.h) and becomes tcp for good at the slightest doubt; an answer that is cut off is still one.
 */
#ifndef CSSL_SSLAGENT_SERVICE_H
#define CSSL_SSLAGENT_SERVICE_H

#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "sslagent/service/http_follower.h"

enum service_place {
	SERVICE_CHECKPOINT, /* everything that was asked is answered */
	SERVICE_ASKING,     /* a request is on its way or waits for its answer; no response byte came */
	SERVICE_ANSWERING,  /* response bytes came */
	SERVICE_OPAQUE,     /* not known */
};

enum service_tcp {
	SERVICE_UNTOUCHED,
	SERVICE_TOUCHED,
	SERVICE_DOUBTED /* it was http, and what is cut off cannot be told */
};

/* What the client said last: only the empty lines that may stand in front of a request (RFC 9112 2.2)? */
enum service_blank { SERVICE_NOT_BLANK, SERVICE_BLANK };

struct service {
	uint8_t kind;               /* enum conf_service */
	uint8_t tcp;                /* enum service_tcp */
	uint8_t blank;              /* enum service_blank */
	struct http_past past;      /* while there is no follower */
	struct http_follower *http; /* NULL while untouched and between two exchanges; for tcp only where it was http
				       and still judges its ends */
	struct slabs *followers;
};

/* @followers: of its worker, for blocks of http_follower_len(). */
void service_init(struct service *s, enum conf_service kind, struct slabs *followers);
void service_destroy(struct service *s);

/* Plaintext on its way. */
void service_from_client(struct service *s, const uint8_t *data, size_t len);

/* What the backend's piece was: whole interim responses (1xx), after which the request waits for its answer as before,
 * or something of an answer. */
enum service_piece { SERVICE_INTERIM, SERVICE_RESPONSE };
enum service_piece service_from_backend(struct service *s, const uint8_t *data, size_t len);

/* Has the client still to send the rest of a request? Never known of tcp. */
int service_is_being_asked(const struct service *s);
/* At most to the end of that request; bytes taken. tcp: all. */
size_t service_from_client_to_end(struct service *s, const uint8_t *data, size_t len);

/* The client has said the first bytes of a request, be they empty lines, and not the end of its head: the request's
 * number, which is another for the next. 0: it has not; never known of tcp. */
#define SERVICE_HEAD_BLANK UINT32_MAX
uint32_t service_head_under_way(const struct service *s);

enum service_place service_place(const struct service *s);

/* May the backend connection serve another conversation from here on? Only ever at a checkpoint. */
enum service_reuse { SERVICE_BACKEND_USED_UP, SERVICE_BACKEND_REUSABLE };
enum service_reuse service_backend_reuse(const struct service *s);

/* And that of another client, whatever the backend made of this one's messages? */
enum http_framing service_framing(const struct service *s);

/* The backend ended in order (FIN). Was that the protocol's end, or was something cut off? */
enum service_end { SERVICE_END_WHOLE, SERVICE_END_CUT };
enum service_end service_backend_ended(struct service *s);

/* The backend's last answer is whole, whatever else was asked; its connection has only to end. */
int service_said_last(const struct service *s);
/* Besides, what the client says now is no part of a request that the backend has begun to read: nobody takes it. */
int service_takes_no_more(const struct service *s);

/* The backend could not be reached and no response byte was sent: the bytes to answer with; NULL: the protocol has
 * none. */
const char *service_unreachable_answer(const struct service *s, size_t *len);

/* Likewise for one whose head did not end in time. */
const char *service_late_answer(const struct service *s, size_t *len);

/* Requests on their way that are not answered; tcp has none. */
unsigned service_outstanding(const struct service *s);
/* Is the answer to one GET all that is due? It may be one that can go on after a loss. */
int service_awaits_download(const struct service *s);
/* May all that was asked since service_init() be asked again? */
enum http_repeat service_repeat(const struct service *s);

/* State for a move in mid-conversation: bytes to allocate with malloc; 0 bytes for tcp. 0 or negative. Restore makes
 * what cannot be restored tcp. */
int service_save(const struct service *s, uint8_t **out, size_t *len);
void service_restore(
	struct service *s, enum conf_service kind, struct slabs *followers, const uint8_t *state, size_t len);

#endif
