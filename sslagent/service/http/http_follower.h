/* http_follower.h: follows the HTTP/1.1 messages (RFC 9112) of one client connection in both directions with llhttp.
 * It changes no byte. It knows where each request and each final response begins and ends. At the parser's slightest
 * doubt, and at CONNECT, Upgrade and connection-bound authentication (NTLM, Negotiate), it gives up for good. From
 * then on it knows no checkpoint, but may still tell a complete answer from a cut one (http_judges_ends()).
 */
#ifndef CSSL_SSLAGENT_HTTP_FOLLOWER_H
#define CSSL_SSLAGENT_HTTP_FOLLOWER_H

#include <stddef.h>
#include <stdint.h>

#include "net/slabs.h"
#include "sslagent/service/http/delivered.h"

#define HTTP_PIPELINE_MAX 64u /* requests that wait for their answers; with more, the follower gives up */

struct http_follower;

/* Does every other parser, however lenient, see the same messages? That is doubted if a header field is folded, a
 * line does not end in CRLF, a version is not 1.1, requests are pipelined, a request has a body,
 * Transfer-Encoding or something like it, or a head comes in pieces (then its lines were not checked). */
enum http_framing { HTTP_FRAMING_PLAIN, HTTP_FRAMING_DOUBTED };

enum http_following { HTTP_FOLLOWS, HTTP_GAVE_UP };

/* The knowledge about a conversation between two exchanges. Zero: no message has passed. */
struct http_past {
	uint8_t spoken;  /* 1 or 0 */
	uint8_t repeat;  /* enum http_repeat, of all requests so far */
	uint8_t framing; /* enum http_framing, of all messages so far */
};

/* Makes a follower in a block of @from, of http_follower_len() bytes. The block goes back to @from. NULL: out of
 * memory. */
struct http_follower *http_follower_create(struct slabs *from, struct http_past past);
void http_follower_destroy(struct slabs *from, struct http_follower *h);
size_t http_follower_len(void);

/* 1: nothing is under way and the connection persists, so another follower can continue with *past. Else 0. */
int http_between_exchanges(const struct http_follower *h, struct http_past *past);

enum http_following http_follow_request(struct http_follower *h, const uint8_t *data, size_t len);
enum http_following http_follow_response(struct http_follower *h, const uint8_t *data, size_t len);

/* Follows at most to the end of the current request. *used: how many bytes. */
enum http_following http_follow_request_to_end(struct http_follower *h, const uint8_t *data, size_t len, size_t *used);

/* The backend sent FIN. 1: the FIN is the regular end of a response, or no response is due. 0: something is cut off. */
int http_follow_response_end(struct http_follower *h);

int http_gave_up(const struct http_follower *h);
/* For a follower that gave up: did the two sides speak HTTP, and do they still? A tunnel (101, CONNECT) decides
 * itself when it ends, like a conversation that never was HTTP. */
int http_judges_ends(const struct http_follower *h);

/* Requests that have begun, and that have not ended or whose final response has not ended. */
unsigned http_outstanding(const struct http_follower *h);
/* Has a request begun that has not ended? */
int http_asking(const struct http_follower *h);
/* The number of a request that has begun and whose head is not complete, from 1 on; 0: there is none. */
uint32_t http_head_under_way(const struct http_follower *h);
/* How many requests have begun. */
uint32_t http_begun(const struct http_follower *h);
/* How many final responses came completely. */
uint32_t http_answered(const struct http_follower *h);
/* A part of the oldest final response has come, maybe all of it; or a part of a head of unknown kind. An agent
 * cannot send words of its own in the middle of it. */
int http_answering(const struct http_follower *h);
/* Both sides of the last exchange let the connection persist. */
int http_persistent(const struct http_follower *h);

/* A complete answer said that it is the last one (RFC 9112 9.6). Later requests get no answer any more. */
int http_said_last(const struct http_follower *h);

/* Exactly one request is not answered: a GET without a body. No byte of its answer and no byte of a later request
 * has come. */
int http_awaits_download(const struct http_follower *h);

/* May the open requests be asked again of a backend that may have done them already (RFC 9110 9.2)? The strictest
 * answer for all requests with a complete head counts. No backend can have done a request before its head is
 * complete. */
enum http_repeat {
	HTTP_REPEAT_ANY_TIME, /* safe methods */
	HTTP_REPEAT_IF_ALONE, /* idempotent methods: not while the first attempt may still run */
	HTTP_REPEAT_NEVER
};
enum http_repeat http_repeat(const struct http_follower *h);
/* The same of the newest request alone. */
enum http_repeat http_repeat_of_last(const struct http_follower *h);

/* The digests of the answer under way (delivered.h); the pointer is NULL if there are none. The follower only keeps
 * them, and releases them at its end. */
struct delivered_watch **http_watch(struct http_follower *h);

enum http_framing http_framing(const struct http_follower *h);

/* Bytes of incomplete heads. */
size_t http_kept_len(const struct http_follower *h);

/* Writes the state as bytes. Returns the bytes written, or CSSL_E_TOO_LONG: an incomplete head is longer than the
 * kept bytes, or a loose end (loose_end.h) is followed. */
#define HTTP_FOLLOWER_STATE_MAX 8448u
ptrdiff_t http_follower_save(const struct http_follower *h, uint8_t out[static HTTP_FOLLOWER_STATE_MAX]);
/* NULL: malformed, of another version, or out of memory. */
struct http_follower *http_follower_restore(struct slabs *from, const uint8_t *in, size_t len);

#endif
