/* http_notes.c: answers that go on after the loss of their owner (service.h): by a range of the rest (download.h), or
 * by a repetition of the whole answer (delivered.h). A repetition is fed to the follower from its first byte on,
 * because chunks can be understood from their beginning only.
 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "conf/conf.h"
#include "proto/error.h"
#include "sslagent/service/http/download.h"
#include "sslagent/service/http/http_follower.h"

struct recall {
	struct service_recall progress; /* first */
	union {
		struct download download;
		struct repetition repetition;
	};
};

static struct recall *recall_of(const struct service_recall *r)
{
	return (struct recall *)r;
}

/* The follower of the conversation, or NULL. */
static struct http_follower *follower_of(const struct service *s)
{
	return s->following == SERVICE_FOLLOWED && s->kind == CONF_HTTP ? s->state : NULL;
}

bool service_can_go_on(const struct service *s)
{
	const struct http_follower *h = follower_of(s);

	return h && http_awaits_download(h);
}

/* --- the owner --- */

/* Does [data, data + len) end with the last chunk? Else the answer is only not protected. */
static bool ends_chunks(const uint8_t *data, size_t len)
{
	return len >= 7 && memcmp(data + len - 7, "\r\n0\r\n\r\n", 7) == 0;
}

static bool is_whole(const struct delivered *d, const uint8_t *data, size_t together)
{
	return d->len == ANSWER_CHUNKED ? ends_chunks(data, together) : d->head_len + d->len <= together;
}

static uint64_t repeats_max(const struct service *s)
{
	return s->listener ? s->listener->repeat_downloads_len : 0;
}

static void begin_watch(struct service *s, const uint8_t *data, size_t len, size_t together)
{
	struct http_follower *h = s->state;
	struct delivered d;

	if (repeats_max(s) && delivered_begins(data, len, &d) == 0 && !is_whole(&d, data, together))
		delivered_watch(&h->watch, &d);
}

size_t service_leave_next_note(
	struct service *s, const uint8_t *data, size_t together, uint8_t out[static SERVICE_NOTE_MAX])
{
	const struct http_follower *h = follower_of(s);

	if (!h || !h->watch || h->watch->now.at + together > repeats_max(s))
		return 0;
	return delivered_note(h->watch, data, together, out);
}

_Static_assert(DOWNLOAD_NOTE_MAX <= SERVICE_NOTE_MAX && DELIVERED_NOTE_MAX <= SERVICE_NOTE_MAX, "a note has room");

size_t service_leave_note(
	struct service *s, const uint8_t *data, size_t len, size_t together, uint8_t out[static SERVICE_NOTE_MAX])
{
	struct download d;

	if (!service_can_go_on(s))
		return 0;
	if (download_begins(data, len, &d) == 0)
		return d.head_len + d.len <= together ? 0 : download_write(&d, out);
	begin_watch(s, data, len, together);
	return service_leave_next_note(s, data, together, out);
}

/* --- a successor --- */

static int recall_download(const uint8_t *note, size_t len, uint64_t delivered, struct recall *out)
{
	struct download *d = &out->download;
	int r = download_read(note, len, d);

	if (r < 0)
		return r;
	if (delivered < d->head_len || delivered - d->head_len > d->len)
		return CSSL_E_RANGE;
	out->progress = (struct service_recall){ SERVICE_ASKS_REST, delivered - d->head_len, d->len };
	return 0;
}

static int recall_repetition(const uint8_t *note, size_t len, uint64_t delivered, struct recall *out)
{
	int r = repetition_read(note, len, delivered, &out->repetition);

	if (r < 0)
		return r;
	out->progress = (struct service_recall){ SERVICE_REPEATS, out->repetition.goal, out->repetition.answer.len };
	return 0;
}

int service_recall(
	const struct service *s, const uint8_t *note, size_t len, uint64_t delivered, struct service_recall **out)
{
	if (s->following != SERVICE_FOLLOWED || s->kind != CONF_HTTP)
		return CSSL_E_NOT_FOUND;
	struct recall *known = calloc(1, sizeof *known);
	if (!known)
		return CSSL_E_NO_MEMORY;
	int r = delivered_is_note(note, len) ? recall_repetition(note, len, delivered, known)
					     : recall_download(note, len, delivered, known);
	if (r < 0)
		free(known);
	else
		*out = &known->progress;
	return r;
}

void service_forget(struct service_recall *r)
{
	if (r)
		sodium_memzero(recall_of(r), sizeof(struct recall)); /* it has plaintext */
	free(r);
}

_Static_assert(DOWNLOAD_ASK_MORE <= SERVICE_ASK_MORE, "a question has room");

ptrdiff_t service_ask_rest(const struct service_recall *r, const uint8_t *heard, size_t len, uint8_t *out, size_t cap)
{
	const struct download *d = r->how == SERVICE_REPEATS ? NULL : &recall_of(r)->download;

	return download_ask(d, r->delivered, heard, len, out, cap);
}

_Static_assert(RESPONSE_HEAD_INCOMPLETE == SERVICE_INCOMPLETE, "one is the other");

static void http_follow(struct service *s, const uint8_t *data, size_t len)
{
	if (len)
		service_from_backend(s, data, len);
}

static bool is_in_answer(const struct service *s)
{
	return s->state && http_answering(s->state);
}

static int is_repetition(struct service *s, struct recall *r, const uint8_t *data, size_t len, size_t *hidden)
{
	struct repetition_heard heard;
	const struct delivered *d = &r->repetition.answer;
	char head[ANSWER_HEAD_MAX];
	int known = repetition_hear(&r->repetition, data, len, &heard);

	*hidden = heard.len;
	if (heard.head_len)
		http_follow(s, (const uint8_t *)head, answer_head_write(d->len, (enum answer_close)d->closes, head));
	http_follow(s, data + heard.head_len, heard.len - heard.head_len);
	if (known < 0 || s->following != SERVICE_FOLLOWED)
		return CSSL_E_MISMATCH;
	if (known == REPETITION_MORE && r->repetition.step == REPETITION_IN_BODY && !is_in_answer(s))
		return CSSL_E_MISMATCH; /* its chunks ended too early */
	return known == REPETITION_MORE ? SERVICE_INCOMPLETE : 0;
}

int service_is_rest(struct service *s, struct service_recall *r, const uint8_t *data, size_t len, size_t *hidden)
{
	*hidden = 0;
	if (r->how == SERVICE_REPEATS)
		return is_repetition(s, recall_of(r), data, len, hidden);
	return download_resumes(&recall_of(r)->download, r->delivered, data, len, hidden);
}

/* The follower gets an answer whose body is the rest. It has all of a repetition already; a later owner compares that
 * with the bytes that the client has got since. */
void service_go_on(struct service *s, const struct service_recall *r)
{
	const struct recall *known = recall_of(r);
	struct http_follower *h = s->state;
	char head[ANSWER_HEAD_MAX];

	if (r->how == SERVICE_REPEATS) {
		if (is_in_answer(s))
			delivered_watch(&h->watch, &known->repetition.answer);
		return;
	}
	const enum answer_close closes = (enum answer_close)known->download.closes;
	http_follow(s, (const uint8_t *)head, answer_head_write(r->len - r->delivered, closes, head));
}
