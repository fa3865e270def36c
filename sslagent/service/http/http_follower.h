/* http_follower.h: follows the HTTP/1.1 messages (RFC 9112) of one client connection in both directions with llhttp.
 * It changes no byte. It knows where each request and each final response begins and ends. At the parser's slightest
 * doubt, and at CONNECT, Upgrade and connection-bound authentication (NTLM, Negotiate), it gives up for good. From
 * then on it knows no checkpoint, but may still tell a complete answer from a cut one (http_judges_ends()).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/memory/slabs.h"
#include "sslagent/service/http/delivered.h"
#include "sslagent/service/http/http_parser.h"
#include "sslagent/service/service.h"

#define HTTP_PIPELINE_MAX 64u /* requests that wait for their answers; with more, the follower gives up */

/* Does every other parser, however lenient, see the same messages? That is doubted if a header field is folded, a
 * line does not end in CRLF, a version is not 1.1, requests are pipelined, a request has a body,
 * Transfer-Encoding or something like it, or a head comes in pieces (then its lines were not checked). */
enum http_framing { HTTP_FRAMING_PLAIN, HTTP_FRAMING_DOUBTED };

enum http_following { HTTP_FOLLOWS, HTTP_GAVE_UP };

enum last_request { REQUEST_OTHER, REQUEST_PLAIN_GET };
enum response_state { RESPONSE_NONE, RESPONSE_INTERIM, RESPONSE_FINAL };
enum tunnel { NO_TUNNEL, TUNNEL };
enum persistence { PERSISTENT, REQUEST_CLOSES, RESPONSE_CLOSES };

/* Names and values that matter are short. A longer one only has to differ from them. */
#define HTTP_NAME_CAP  20u
#define HTTP_VALUE_CAP 10u

struct http_seen {
	char name[HTTP_NAME_CAP];
	char value[HTTP_VALUE_CAP];
	uint8_t name_len, value_len;
};

struct http_follower {
	struct http_parser request, response;
	struct http_seen request_header, response_header;
	uint64_t head_bits;     /* bit n % 64 is for request number n */
	uint32_t begun, asked;  /* requests: begun, and ended */
	uint32_t answered;      /* final responses that came completely */
	uint32_t headed;        /* requests whose head is complete */
	uint8_t response_state; /* enum response_state */
	uint8_t persistence;    /* enum persistence */
	/* enum service_repeat: may the open requests be asked again of a backend that may have done them already (RFC
	 * 9110 9.2)? Safe methods any time, idempotent ones if alone. The strictest answer for all requests with a
	 * complete head counts: no backend can have done a request before that. */
	uint8_t repeat;
	uint8_t last_request; /* enum last_request */
	uint8_t following;    /* enum http_following */
	uint8_t tunnel;       /* enum tunnel */
	uint8_t framing;      /* enum http_framing */
	/* During a call, for the head that is being parsed: from its target, status or first field on. NULL: not
	 * seen. */
	const uint8_t *head, *input_end;
	struct delivered_watch *watch; /* the digests of the answer under way; NULL: there are none */
};

/* The knowledge about a conversation between two exchanges. Zero: no message has passed. */
struct http_past {
	uint8_t spoken;  /* 1 or 0 */
	uint8_t repeat;  /* enum service_repeat, of all requests so far */
	uint8_t framing; /* enum http_framing, of all messages so far */
};

/* Makes a follower in a block of @from. The block goes back to @from. NULL: out of memory. */
struct http_follower *http_follower_create(struct slabs *from, struct http_past past);
void http_follower_destroy(struct slabs *from, struct http_follower *h);

/* Is nothing under way, and does the connection persist? Then another follower can continue with *past. */
bool http_between_exchanges(const struct http_follower *h, struct http_past *past);

/* *used: how many bytes. TO_END: at most to the end of the current request. */
enum http_following http_follow_request(
	struct http_follower *h, const uint8_t *data, size_t len, enum service_until until, size_t *used);
enum http_following http_follow_response(struct http_follower *h, const uint8_t *data, size_t len);

/* The backend sent FIN. Is it the regular end of a response, or is none due? Else something is cut off. */
bool http_follow_response_end(struct http_follower *h);

/* For a follower that gave up: did the two sides speak HTTP, and do they still? A tunnel (101, CONNECT) decides
 * itself when it ends, like a conversation that never was HTTP. */
bool http_judges_ends(const struct http_follower *h);

/* Requests that have begun, and that have not ended or whose final response has not ended. */
unsigned http_outstanding(const struct http_follower *h);
/* Has a request begun that has not ended? */
bool http_asking(const struct http_follower *h);
/* The number of a request that has begun and whose head is not complete, from 1 on; 0: there is none. */
uint32_t http_head_under_way(const struct http_follower *h);
/* A part of the oldest final response has come, maybe all of it; or a part of a head of unknown kind. An agent
 * cannot send words of its own in the middle of it. */
bool http_answering(const struct http_follower *h);

/* A complete answer said that it is the last one (RFC 9112 9.6). Later requests get no answer any more. */
bool http_said_last(const struct http_follower *h);

/* Exactly one request is not answered: a GET without a body. No byte of its answer and no byte of a later request
 * has come. */
bool http_awaits_download(const struct http_follower *h);

/* May the newest request be asked again, whatever the others are? */
enum service_repeat http_repeat_of_last(const struct http_follower *h);

/* Bytes of incomplete heads. */
size_t http_kept_len(const struct http_follower *h);

/* Writes the state as bytes. Returns the bytes written, or CSSL_E_TOO_LONG: an incomplete head is longer than the
 * kept bytes, or a loose end (loose_end.h) is followed. */
#define HTTP_FOLLOWER_STATE_MAX 9574u
ptrdiff_t http_follower_save(const struct http_follower *h, uint8_t out[static HTTP_FOLLOWER_STATE_MAX]);
/* NULL: malformed, of another version, or out of memory. */
struct http_follower *http_follower_restore(struct slabs *from, const uint8_t *in, size_t len);
