/* http_follower.h: follows the HTTP/1.1 messages (RFC 9112) of one client connection in both directions with llhttp,
 * without changing a byte: where each request and each final response begins and ends. At the parser's slightest doubt,
 * at CONNECT, Upgrade and connection-bound authentication (NTLM, Negotiate) it gives up for good. From then on it knows
 * no checkpoint any more, but may still tell an answer's end from a cut (http_judges_ends()).
 */
#ifndef CSSL_SSLAGENT_HTTP_FOLLOWER_H
#define CSSL_SSLAGENT_HTTP_FOLLOWER_H

#include <stddef.h>
#include <stdint.h>

#include "net/slabs.h"

#define HTTP_PIPELINE_MAX 64u /* requests on their way; more is doubt */

struct http_follower;

/* Is it certain that every other parser, however lenient, sees the same messages? Not where a header field is folded, a
 * line does not end in CRLF, a version is not 1.1, requests are pipelined, a request has Transfer-Encoding, something
 * like it or a body that its method does not want, or a head comes in pieces (then nobody looked). */
enum http_framing { HTTP_FRAMING_PLAIN, HTTP_FRAMING_DOUBTED };

enum http_following { HTTP_FOLLOWS, HTTP_GAVE_UP };

/* What is left to know of a conversation between two exchanges. Zero: nothing was said. */
struct http_past {
	uint8_t spoken;  /* 1 or 0 */
	uint8_t repeat;  /* enum http_repeat, of all requests so far */
	uint8_t framing; /* enum http_framing, of all messages so far */
};

/* A block of @from, of http_follower_len(), to which it goes back. NULL: out of memory. */
struct http_follower *http_follower_create(struct slabs *from, struct http_past past);
void http_follower_destroy(struct slabs *from, struct http_follower *h);
size_t http_follower_len(void);

/* Nothing is under way and the connection persists: 1, and another follower can go on with *past. Else 0. */
int http_between_exchanges(const struct http_follower *h, struct http_past *past);

enum http_following http_follow_request(struct http_follower *h, const uint8_t *data, size_t len);
enum http_following http_follow_response(struct http_follower *h, const uint8_t *data, size_t len);

/* At most to the end of the request that is under way; *used: how far. */
enum http_following http_follow_request_to_end(struct http_follower *h, const uint8_t *data, size_t len, size_t *used);

/* The backend's FIN. 1: it ended a response whose end that is, or none is due; 0: something is cut off. */
int http_follow_response_end(struct http_follower *h);

int http_gave_up(const struct http_follower *h);
/* Of one that gave up: was HTTP spoken, and is it still? A tunnel's ends (101, CONNECT) are its own, like those of what
 * never was HTTP. */
int http_judges_ends(const struct http_follower *h);

/* Requests that began and that have not ended themselves, or whose final response has not. */
unsigned http_outstanding(const struct http_follower *h);
/* Has a request begun that has not ended itself? */
int http_asking(const struct http_follower *h);
/* Has a request begun whose head has not ended? Its number, from 1 on; 0: no. */
uint32_t http_head_under_way(const struct http_follower *h);
/* How many requests have begun. */
uint32_t http_begun(const struct http_follower *h);
/* How many final responses were answered whole. */
uint32_t http_answered(const struct http_follower *h);
/* Bytes of a final response came for the oldest of them, maybe all; or part of a head, whatever it turns out to be:
 * nothing else can be said in its midst. */
int http_answering(const struct http_follower *h);
/* Both sides of the last exchange let the connection persist. */
int http_persistent(const struct http_follower *h);

/* An answer that is whole said that it is the last one (RFC 9112 9.6): nothing that was asked behind its request is
 * answered any more. */
int http_said_last(const struct http_follower *h);

/* A GET without a body is all that was asked and not answered, nothing of its answer came, and nothing of a later
 * request. */
int http_awaits_download(const struct http_follower *h);

/* May what was asked be asked again of a backend that may have done it already (RFC 9110 9.2)? The strictest answer of
 * all requests whose whole head came; before its head is whole none can have been done. */
enum http_repeat {
	HTTP_REPEAT_ANY_TIME, /* safe methods */
	HTTP_REPEAT_IF_ALONE, /* idempotent ones: not while the first attempt may still go on */
	HTTP_REPEAT_NEVER
};
enum http_repeat http_repeat(const struct http_follower *h);

enum http_framing http_framing(const struct http_follower *h);

/* Bytes of heads that are not whole. */
size_t http_kept_len(const struct http_follower *h);

/* State as bytes. Bytes written, or CSSL_E_TOO_LONG: a head that is not whole is longer than what is kept of it. */
#define HTTP_FOLLOWER_STATE_MAX 8448u
ptrdiff_t http_follower_save(const struct http_follower *h, uint8_t out[static HTTP_FOLLOWER_STATE_MAX]);
/* NULL: malformed, of another version, or out of memory. */
struct http_follower *http_follower_restore(struct slabs *from, const uint8_t *in, size_t len);

#endif
