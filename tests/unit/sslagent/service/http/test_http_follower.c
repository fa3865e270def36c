/* test_http_follower.c: facts of following HTTP/1.1 messages. Conversations are fed whole, byte by byte, and saved and
 * restored at every byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/service/http/http_follower.h"
#include "sslagent/service/http/http_parser.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

/* Bytes of one side; a conversation ends with an empty line of the table. */
struct turn {
	enum { CLIENT, BACKEND } from;
	const char *bytes;
};

struct conversation {
	const char *name;
	struct turn turns[6];
	enum http_following following;
	unsigned outstanding;
	int answering, persistent;
};

static struct slabs blocks;
static const struct http_past new;

#define GET  "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define HEAD "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"
#define OK5  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static const struct conversation conversations[] = {
	{ "request without answer", { { CLIENT, GET } }, HTTP_FOLLOWS, 1, 0, 1 },
	{ "half a request", { { CLIENT, "GET / HTTP/1.1\r\nHo" } }, HTTP_FOLLOWS, 1, 0, 1 },
	{ "answered", { { CLIENT, GET }, { BACKEND, OK5 } }, HTTP_FOLLOWS, 0, 0, 1 },
	{ "half an answer", { { CLIENT, GET }, { BACKEND, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel" } },
		HTTP_FOLLOWS, 1, 1, 1 },
	{ "half a head", { { CLIENT, GET }, { BACKEND, "HTTP/1.1 200 OK\r\nContent-Le" } }, HTTP_FOLLOWS, 1, 1, 1 },
	{ "interim answer", { { CLIENT, GET }, { BACKEND, "HTTP/1.1 103 Early Hints\r\n\r\n" } }, HTTP_FOLLOWS, 1, 0,
		1 },
	{ "interim and final", { { CLIENT, GET }, { BACKEND, "HTTP/1.1 100 Continue\r\n\r\n" OK5 } }, HTTP_FOLLOWS, 0,
		0, 1 },
	{ "pipelined, one answered", { { CLIENT, GET GET }, { BACKEND, OK5 } }, HTTP_FOLLOWS, 1, 0, 1 },
	{ "answer to HEAD has no body",
		{ { CLIENT, HEAD GET }, { BACKEND, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" OK5 } }, HTTP_FOLLOWS,
		0, 0, 1 },
	{ "204 and 304 have no body",
		{ { CLIENT, GET GET },
			{ BACKEND, "HTTP/1.1 204 No\r\n\r\nHTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n" } },
		HTTP_FOLLOWS, 0, 0, 1 },
	{ "chunked both ways",
		{ { CLIENT, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" },
			{ BACKEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nT: "
				   "v\r\n\r\n" } },
		HTTP_FOLLOWS, 0, 0, 1 },
	{ "answer before the end of the request",
		{ { CLIENT, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc" }, { BACKEND, OK5 } },
		HTTP_FOLLOWS, 1, 1, 1 },
	{ "and then its end",
		{ { CLIENT, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc" }, { BACKEND, OK5 },
			{ CLIENT, "defghij" } },
		HTTP_FOLLOWS, 0, 0, 1 },
	{ "client closes", { { CLIENT, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n" }, { BACKEND, OK5 } },
		HTTP_FOLLOWS, 0, 0, 0 },
	{ "backend closes",
		{ { CLIENT, GET }, { BACKEND, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" } },
		HTTP_FOLLOWS, 0, 0, 0 },
	{ "body until the end", { { CLIENT, GET }, { BACKEND, "HTTP/1.1 200 OK\r\n\r\nbla" } }, HTTP_FOLLOWS, 1, 1, 1 },
	{ "upgrade", { { CLIENT, "GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n" } },
		HTTP_GAVE_UP, 0, 0, 0 },
	{ "CONNECT", { { CLIENT, "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n" } }, HTTP_GAVE_UP, 0, 0, 0 },
	{ "NTLM", { { CLIENT, "GET / HTTP/1.1\r\nAuthorization: NTLM abc\r\n\r\n" } }, HTTP_GAVE_UP, 0, 0, 0 },
	{ "Negotiate offered",
		{ { CLIENT, GET },
			{ BACKEND, "HTTP/1.1 401 No\r\nWWW-Authenticate: negotiate\r\nContent-Length: 0\r\n\r\n" } },
		HTTP_GAVE_UP, 0, 0, 0 },
	{ "no HTTP", { { CLIENT, "SSH-2.0-x\r\n" } }, HTTP_GAVE_UP, 0, 0, 0 },
	{ "an answer nobody asked for", { { BACKEND, OK5 } }, HTTP_GAVE_UP, 0, 0, 0 },
	{ "two lengths", { { CLIENT, "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n" } },
		HTTP_GAVE_UP, 0, 0, 0 },
	{ "length and chunked",
		{ { CLIENT, "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" } },
		HTTP_GAVE_UP, 0, 0, 0 },
};
#define CONVERSATIONS ((int)(sizeof conversations / sizeof conversations[0]))

static enum http_following request(struct http_follower *h, const uint8_t *data, size_t len)
{
	size_t used;
	const enum http_following r = http_follow_request(h, data, len, SERVICE_ALL, &used);

	ck_assert_uint_eq(used, len);
	return r;
}

static enum http_following feed(struct http_follower *h, const struct turn *t, size_t at, size_t len)
{
	const uint8_t *bytes = (const uint8_t *)t->bytes + at;

	return t->from == CLIENT ? request(h, bytes, len) : http_follow_response(h, bytes, len);
}

static void check_end(const struct conversation *c, const struct http_follower *h, enum http_following following)
{
	ck_assert_msg(following == c->following, "%s: following %d", c->name, (int)following);
	if (following == HTTP_GAVE_UP)
		return;
	ck_assert_msg(http_outstanding(h) == c->outstanding, "%s: %u outstanding", c->name, http_outstanding(h));
	ck_assert_msg(http_answering(h) == c->answering, "%s: answering", c->name);
	ck_assert_msg((h->persistence == PERSISTENT) == c->persistent, "%s: persistent", c->name);
}

START_TEST(conversations_fed_whole_stand_where_they_stand)
{
	const struct conversation *c = &conversations[_i];
	struct http_follower *h = http_follower_create(&blocks, new);
	enum http_following following = HTTP_FOLLOWS;

	for (const struct turn *t = c->turns; t->bytes; t++)
		following = feed(h, t, 0, strlen(t->bytes));
	check_end(c, h, following);
	http_follower_destroy(&blocks, h);
}
END_TEST

START_TEST(byte_by_byte_makes_no_difference)
{
	const struct conversation *c = &conversations[_i];
	struct http_follower *h = http_follower_create(&blocks, new);
	enum http_following following = HTTP_FOLLOWS;

	for (const struct turn *t = c->turns; t->bytes; t++) {
		for (size_t i = 0; t->bytes[i]; i++)
			following = feed(h, t, i, 1);
	}
	check_end(c, h, following);
	http_follower_destroy(&blocks, h);
}
END_TEST

static struct http_follower *through_bytes(struct http_follower *h)
{
	uint8_t saved[HTTP_FOLLOWER_STATE_MAX];
	ptrdiff_t len = http_follower_save(h, saved);

	ck_assert_int_gt(len, 0);
	http_follower_destroy(&blocks, h);
	h = http_follower_restore(&blocks, saved, (size_t)len);
	ck_assert_ptr_nonnull(h);
	return h;
}

START_TEST(a_follower_restored_at_any_byte_goes_on_the_same)
{
	const struct conversation *c = &conversations[_i];
	struct http_follower *h = http_follower_create(&blocks, new);
	enum http_following following = HTTP_FOLLOWS;

	for (const struct turn *t = c->turns; t->bytes; t++) {
		for (size_t i = 0; t->bytes[i]; i++) {
			following = feed(h, t, i, 1);
			h = through_bytes(h);
		}
	}
	check_end(c, h, following);
	http_follower_destroy(&blocks, h);
}
END_TEST

/* --- one move, anywhere --- */

#define EMPTY_CLOSES "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

static const struct {
	const char *asked, *answered;
} exchanges[] = {
	{ GET GET, OK5 OK5 },
	{ "\r\n\r\n" GET, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" OK5 },
	{ HEAD GET, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" OK5 },
	{ "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;n=v\r\nabc\r\n1a\r\n"
	  "abcdefghijklmnopqrstuvwxyz\r\n0\r\nTrailer: value\r\nOther: x\r\n\r\n" GET,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10;x=\"y\"\r\n0123456789abcdef\r\n0\r\nT: "
		"v\r\n\r\n" },
	{ "PUT /b HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\nhello, world" HEAD,
		"HTTP/1.1 204 No\r\n\r\nHTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n" },
	{ "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" GET,
		"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nab" OK5 },
	{ "GET / HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\nuntil the end" },
	{ GET, "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nuntil the end" },
	{ GET GET, EMPTY_CLOSES OK5 },
	{ "POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc" GET, OK5 },
	{ "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc", OK5 },
	{ "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\nbytes", "HTTP/1.1 200 OK\r\n\r\nbytes" },
	{ "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", "HTTP/1.1 403 No\r\nContent-Length: 4\r\n\r\nno" },
	{ "GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n\x81" },
	{ "GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", OK5 },
	{ "GET / HTTP/1.1\r\nAuthorization: NTLM abc\r\n\r\n", OK5 },
	{ GET "\1\2", OK5 },
	{ "GET / HTTP/1.1\nHost: a\n\n" GET, "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello" OK5 },
};
#define EXCHANGES ((int)(sizeof exchanges / sizeof exchanges[0]))

enum way { STAYS, MOVES };

static struct http_follower *feed_cut(struct http_follower *h, int from, const char *bytes, size_t cut, enum way way)
{
	const struct turn t = { from, bytes };
	size_t len = strlen(bytes);

	feed(h, &t, 0, cut);
	if (way == MOVES)
		h = through_bytes(h);
	feed(h, &t, cut, len - cut);
	return h;
}

/* All that can be asked of it, and at last how the backend's end would be judged. */
static void note_facts(struct http_follower *h, char out[static 160])
{
	struct http_past past = { 0 };
	int between = http_between_exchanges(h, &past), gave_up = h->following == HTTP_GAVE_UP;

	int n = snprintf(out, 160,
		"gave up %d judges %d outstanding %u asking %d head %u begun %u answered %u answering %d", gave_up,
		http_judges_ends(h), http_outstanding(h), http_asking(h), http_head_under_way(h), h->begun, h->answered,
		http_answering(h));
	snprintf(out + n, 160 - (size_t)n, " %d%d%d%d%d%d%d%d", h->persistence == PERSISTENT, http_said_last(h),
		http_awaits_download(h), (int)h->repeat, (int)h->framing, between, past.repeat,
		http_follow_response_end(h));
}

static void go(int exchange, size_t asked_cut, size_t answered_cut, enum way way, char out[static 160])
{
	struct http_follower *h = http_follower_create(&blocks, new);

	h = feed_cut(h, CLIENT, exchanges[exchange].asked, asked_cut, way);
	h = feed_cut(h, BACKEND, exchanges[exchange].answered, answered_cut, way);
	note_facts(h, out);
	http_follower_destroy(&blocks, h);
}

START_TEST(a_follower_restored_anywhere_is_the_one_that_stayed)
{
	char stayed[160], moved[160];

	for (size_t i = 0; i <= strlen(exchanges[_i].asked); i++) {
		for (size_t j = 0; j <= strlen(exchanges[_i].answered); j++) {
			go(_i, i, j, STAYS, stayed);
			go(_i, i, j, MOVES, moved);
			ck_assert_msg(
				strcmp(stayed, moved) == 0, "%d at %zu and %zu:\n%s\n%s", _i, i, j, stayed, moved);
		}
	}
}
END_TEST

START_TEST(a_head_that_is_too_long_to_be_kept_does_not_move)
{
	struct http_follower *h = http_follower_create(&blocks, new);
	uint8_t saved[HTTP_FOLLOWER_STATE_MAX];
	char field[HTTP_KEPT_MAX];

	memset(field, 'x', sizeof field);
	request(h, (const uint8_t *)"GET / HTTP/1.1\r\nF: ", 19);
	ck_assert_int_gt(http_follower_save(h, saved), 0);
	ck_assert_uint_eq(http_kept_len(h), 19);
	request(h, (const uint8_t *)field, sizeof field);
	ck_assert_int_eq(http_follower_save(h, saved), CSSL_E_TOO_LONG);
	request(h, (const uint8_t *)"x", 1);
	ck_assert_int_eq(http_follower_save(h, saved), CSSL_E_TOO_LONG);
	request(h, (const uint8_t *)"\r\n\r\n", 4);
	ck_assert_int_gt(http_follower_save(h, saved), 0);
	ck_assert_int_eq(h->following, HTTP_FOLLOWS);
	ck_assert_uint_eq(http_kept_len(h), 0);
	http_follower_destroy(&blocks, h);
}
END_TEST

START_TEST(bytes_of_another_make_restore_nothing)
{
	struct http_follower *h = http_follower_create(&blocks, new);
	uint8_t saved[HTTP_FOLLOWER_STATE_MAX];
	size_t len = (size_t)http_follower_save(h, saved);

	ck_assert_ptr_null(http_follower_restore(&blocks, saved, len - 1));
	saved[0] ^= 1;
	ck_assert_ptr_null(http_follower_restore(&blocks, saved, len));
	http_follower_destroy(&blocks, h);
}
END_TEST

static int end_after(const char *response)
{
	struct http_follower *h = http_follower_create(&blocks, new);

	request(h, (const uint8_t *)GET, strlen(GET));
	http_follow_response(h, (const uint8_t *)response, strlen(response));
	int whole = http_follow_response_end(h);
	http_follower_destroy(&blocks, h);
	return whole;
}

START_TEST(an_end_is_whole_only_where_the_protocol_shows_it)
{
	ck_assert_int_eq(end_after(OK5), 1);
	ck_assert_int_eq(end_after("HTTP/1.1 200 OK\r\n\r\nuntil the end"), 1);
	ck_assert_int_eq(end_after("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"), 0);
	ck_assert_int_eq(end_after("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"), 0);
	ck_assert_int_eq(end_after("HTTP/1.1 200 OK\r\nContent-"), 0);
	ck_assert_int_eq(end_after("HTTP/1.1 100 Continue\r\n\r\n"), 0);
	ck_assert_int_eq(end_after(""), 0);
}
END_TEST

#define POST    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
#define CHUNKED "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: v\r\n\r\n"

START_TEST(a_request_is_followed_to_its_end_and_no_further)
{
	static const char *const requests[] = { GET, HEAD, POST, CHUNKED };
	const char *first = requests[_i];
	char both[512];
	size_t used, len = (size_t)snprintf(both, sizeof both, "%s" POST, first);

	for (size_t at = 0; at < strlen(first); at++) { /* of which so much was followed before */
		struct http_follower *h = http_follower_create(&blocks, new);
		request(h, (const uint8_t *)both, at);
		ck_assert_int_eq(http_asking(h), at > 0);
		ck_assert_int_eq(http_follow_request(h, (const uint8_t *)both + at, len - at, SERVICE_TO_END, &used),
			HTTP_FOLLOWS);
		ck_assert_uint_eq(at + used, strlen(first));
		ck_assert_int_eq(http_asking(h), 0);
		ck_assert_uint_eq(http_outstanding(h), 1);
		h = through_bytes(h);
		ck_assert_int_eq(request(h, (const uint8_t *)POST, strlen(POST)), HTTP_FOLLOWS);
		ck_assert_int_eq(http_asking(h), 0);
		ck_assert_uint_eq(http_outstanding(h), 2);
		http_follower_destroy(&blocks, h);
	}
}
END_TEST

START_TEST(to_the_end_is_all_there_is_where_the_end_is_not)
{
	struct http_follower *h = http_follower_create(&blocks, new);
	size_t used;

	ck_assert_int_eq(http_follow_request(h, (const uint8_t *)POST, 20, SERVICE_TO_END, &used), HTTP_FOLLOWS);
	ck_assert_uint_eq(used, 20);
	ck_assert_int_eq(http_follow_request(h, (const uint8_t *)"\1\2", 2, SERVICE_TO_END, &used), HTTP_GAVE_UP);
	ck_assert_uint_eq(used, 2);
	http_follower_destroy(&blocks, h);
}
END_TEST

/* The follower goes wherever nothing is under way, and another goes on. */
START_TEST(between_exchanges_another_follower_makes_no_difference)
{
	const struct conversation *c = &conversations[_i];
	struct http_follower *h = http_follower_create(&blocks, new);
	enum http_following following = HTTP_FOLLOWS;
	struct http_past past;

	for (const struct turn *t = c->turns; t->bytes; t++) {
		for (size_t i = 0; t->bytes[i]; i++) {
			following = feed(h, t, i, 1);
			const uint8_t repeat = h->repeat;
			const int judges = http_judges_ends(h);
			if (!http_between_exchanges(h, &past))
				continue;
			http_follower_destroy(&blocks, h);
			h = http_follower_create(&blocks, past);
			ck_assert_int_eq(h->repeat, repeat);
			ck_assert_int_eq(http_judges_ends(h), judges);
			ck_assert(http_between_exchanges(h, &past));
		}
	}
	check_end(c, h, following);
	http_follower_destroy(&blocks, h);
}
END_TEST

/* Whether others are certain to read a request and its answer the same. Where they are not, some releases of llhttp
 * give up, and others go on. */
static const struct {
	const char *request, *answer;
	enum http_framing framing;
} framings[] = {
	{ GET, OK5, HTTP_FRAMING_PLAIN },
	/* a backend that is not strict sends the body that it announces */
	{ HEAD, "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n", HTTP_FRAMING_DOUBTED },
	{ HEAD, "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_FRAMING_DOUBTED },
	{ HEAD, "HTTP/1.1 200\r\n\r\n", HTTP_FRAMING_DOUBTED },
	{ HEAD, "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", HTTP_FRAMING_PLAIN },
	{ GET, "HTTP/1.1 304\r\nContent-Length: 5\r\n\r\n", HTTP_FRAMING_DOUBTED },
	{ GET, "HTTP/1.1 304\r\nETag: \"a\"\r\n\r\n", HTTP_FRAMING_PLAIN },
	{ GET, "HTTP/1.1 204\r\nContent-Length: 5\r\n\r\n", HTTP_FRAMING_DOUBTED },
	{ GET, "HTTP/1.1 204 No Content\r\n\r\n", HTTP_FRAMING_PLAIN },
	{ "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", OK5, HTTP_FRAMING_PLAIN },
	{ "DELETE /x HTTP/1.1\r\nHost: a\r\n\r\n", OK5, HTTP_FRAMING_PLAIN },
	{ GET, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", HTTP_FRAMING_PLAIN },
	{ GET, "HTTP/1.1 100 Continue\r\n\r\n" OK5, HTTP_FRAMING_PLAIN },
	/* requests */
	{ "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n", OK5, HTTP_FRAMING_DOUBTED },
	{ "GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\ty\r\n\r\n", OK5, HTTP_FRAMING_DOUBTED },
	{ "GET / HTTP/1.1\nHost: a\n\n", OK5, HTTP_FRAMING_DOUBTED },
	{ "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", OK5, HTTP_FRAMING_DOUBTED },
	{ "GET / HTTP/1.1\r\nHost: a\r\nX: y\n\r\n", OK5, HTTP_FRAMING_DOUBTED },
	{ "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", OK5, HTTP_FRAMING_DOUBTED },
	{ CHUNKED, OK5, HTTP_FRAMING_DOUBTED },
	{ "GET / HTTP/1.1\r\nContent_Length: 3\r\n\r\n", OK5, HTTP_FRAMING_DOUBTED },
	{ "GET / HTTP/1.1\r\ntransfer_encoding: chunked\r\n\r\n", OK5, HTTP_FRAMING_DOUBTED },
	{ "GET / HTTP/1.1\r\nX_Length: 3\r\n\r\n", OK5, HTTP_FRAMING_PLAIN },
	{ "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", OK5, HTTP_FRAMING_DOUBTED },
	{ "DELETE / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", OK5, HTTP_FRAMING_DOUBTED },
	{ GET GET, OK5 OK5, HTTP_FRAMING_DOUBTED },
	{ "GET / HTTP/1.1\rHost: a\r\n\r\n", OK5, HTTP_FRAMING_DOUBTED },
	{ "GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n", OK5, HTTP_FRAMING_DOUBTED },
	{ "POST / HTTP/1.1\r\nContent-Length : 3\r\n\r\nabc", OK5, HTTP_FRAMING_DOUBTED },
	{ "POST / HTTP/1.1\r\nContent-Length: +3\r\n\r\nabc", OK5, HTTP_FRAMING_DOUBTED },
	{ "POST / HTTP/1.1\r\nContent-Length: 3, 3\r\n\r\nabc", OK5, HTTP_FRAMING_DOUBTED },
	{ POST, "HTTP/1.1 204 No Content\r\n\r\n", HTTP_FRAMING_DOUBTED },
	{ "PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", OK5, HTTP_FRAMING_DOUBTED },
	/* answers */
	{ GET, "HTTP/1.1 200 OK\r\nX: y\r\n z\r\nContent-Length: 0\r\n\r\n", HTTP_FRAMING_DOUBTED },
	{ GET, "HTTP/1.1 200 OK\nContent-Length: 0\n\n", HTTP_FRAMING_DOUBTED },
	{ GET, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", HTTP_FRAMING_DOUBTED },
};
#define FRAMINGS ((int)(sizeof framings / sizeof framings[0]))

START_TEST(framing_is_plain_only_where_all_parsers_agree)
{
	struct http_follower *h = http_follower_create(&blocks, new);
	struct http_past past;

	request(h, (const uint8_t *)framings[_i].request, strlen(framings[_i].request));
	http_follow_response(h, (const uint8_t *)framings[_i].answer, strlen(framings[_i].answer));
	if (framings[_i].framing == HTTP_FRAMING_PLAIN)
		ck_assert_msg(h->following != HTTP_GAVE_UP, "%s", framings[_i].request);
	if (h->following != HTTP_GAVE_UP) {
		ck_assert_msg(h->framing == framings[_i].framing, "%s", framings[_i].request);
		ck_assert(http_between_exchanges(h, &past));
		ck_assert_int_eq(past.framing, framings[_i].framing);
	}
	http_follower_destroy(&blocks, h);
}
END_TEST

START_TEST(framing_of_a_head_in_pieces_is_not_known)
{
	for (size_t at = 1; at < strlen(GET); at++) {
		struct http_follower *h = http_follower_create(&blocks, new);
		request(h, (const uint8_t *)GET, at);
		request(h, (const uint8_t *)GET + at, strlen(GET) - at);
		if (at > strlen("GET "))
			ck_assert_int_eq(h->framing, HTTP_FRAMING_DOUBTED);
		http_follower_destroy(&blocks, h);
	}
}
END_TEST

START_TEST(more_requests_than_can_be_remembered_are_doubt)
{
	struct http_follower *h = http_follower_create(&blocks, new);

	for (unsigned i = 0; i < HTTP_PIPELINE_MAX; i++)
		ck_assert_int_eq(request(h, (const uint8_t *)GET, strlen(GET)), HTTP_FOLLOWS);
	ck_assert_int_eq(request(h, (const uint8_t *)GET, strlen(GET)), HTTP_GAVE_UP);
	http_follower_destroy(&blocks, h);
}
END_TEST

UNIT(http_follower)
{
	slabs_init(&blocks, sizeof(struct http_follower));
	Suite *s = suite_create("http_follower");
	TCase *t = tcase_create("facts");

	tcase_add_loop_test(t, conversations_fed_whole_stand_where_they_stand, 0, CONVERSATIONS);
	tcase_add_loop_test(t, byte_by_byte_makes_no_difference, 0, CONVERSATIONS);
	tcase_add_loop_test(t, between_exchanges_another_follower_makes_no_difference, 0, CONVERSATIONS);
	tcase_add_loop_test(t, a_follower_restored_at_any_byte_goes_on_the_same, 0, CONVERSATIONS);
	tcase_add_loop_test(t, a_follower_restored_anywhere_is_the_one_that_stayed, 0, EXCHANGES);
	tcase_add_test(t, a_head_that_is_too_long_to_be_kept_does_not_move);
	tcase_add_test(t, bytes_of_another_make_restore_nothing);
	tcase_add_test(t, an_end_is_whole_only_where_the_protocol_shows_it);
	tcase_add_loop_test(t, a_request_is_followed_to_its_end_and_no_further, 0, 4);
	tcase_add_test(t, to_the_end_is_all_there_is_where_the_end_is_not);
	tcase_add_loop_test(t, framing_is_plain_only_where_all_parsers_agree, 0, FRAMINGS);
	tcase_add_test(t, framing_of_a_head_in_pieces_is_not_known);
	tcase_add_test(t, more_requests_than_can_be_remembered_are_doubt);
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? 1 : 0;
}
