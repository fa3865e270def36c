/* filter.c: asks hook after hook. A verdict is given at the end of a turn of the loop. */
#include "smtpproxy/hooks/call.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "net/report/error_text.h"

static const char rejects[] = "550 5.7.1 Rejected by a filter\r\n";
static const char defers[] = "451 4.7.1 Put off by a filter, try again later\r\n";
static const char fails_now[] = "451 4.3.0 A filter does not answer, try again later\r\n";
static const char fails_for_good[] = "554 5.3.0 A filter does not answer\r\n";

const struct smtp_span call_reply_rejects = { rejects, sizeof rejects - 1 };
const struct smtp_span call_reply_defers = { defers, sizeof defers - 1 };

static const struct call_kind *const kinds[] = {
	[SMTPPROXY_HOOK_MILTER] = &milter_kind,
	[SMTPPROXY_HOOK_HTTP] = &http_judge_kind,
};

static void ask_next(struct filter *f);

/* The memory */

static void free_if_over(struct filter *f)
{
	if (f->fn || f->open > 0)
		return;
	turn_end_cancel(&f->later);
	json_decref(f->recipients);
	free(f->sender);
	free(f->last_recipient);
	free(f->listener);
	free(f->destination);
	free(f);
}

bool filter_holds(const struct filter *f)
{
	for (unsigned i = 0; i < f->count; i++)
		if (f->calls[i].kind->steps & 1u << FILTER_MESSAGE && f->calls[i].state != CALL_OVER)
			return true;
	return false;
}

/* Connections */

static void close_call(struct call *c, enum call_state to)
{
	if (c->state == CALL_RESTS && c->kind->bye) {
		c->kind->bye(c);
		stream_flush(&c->stream);
	}
	if (c->state == CALL_ASKED || c->state == CALL_RESTS)
		stream_close(&c->stream);
	if (c->kind->end)
		c->kind->end(c);
	c->state = to;
	deadline_cancel(&c->deadline);
}

static bool is_closed(const struct call *c)
{
	return c->state == CALL_LOST || c->state == CALL_OVER;
}

static size_t on_call_data(struct stream *s, uint8_t *data, size_t len)
{
	struct call *c = container_of(s, struct call, stream);
	size_t used = 0, taken = 1;

	while (used < len && taken > 0 && !is_closed(c)) {
		taken = c->kind->take(c, data + used, len - used);
		used += taken;
	}
	return is_closed(c) ? len : used;
}

static void on_call_end(struct stream *s, enum stream_end end, int uv_error)
{
	struct call *c = container_of(s, struct call, stream);

	if (c->state == CALL_ASKED && end == STREAM_EOF && c->kind->ended)
		c->kind->ended(c);
	else if (!is_closed(c))
		call_fails(c, end == STREAM_EOF ? "it ended the connection" : error_text(uv_error));
}

static void on_call_connected(struct stream *s, int uv_error)
{
	struct call *c = container_of(s, struct call, stream);

	if (is_closed(c))
		return;
	if (uv_error)
		call_fails(c, error_text(uv_error));
	else
		stream_read_start(s);
}

static void on_call_written(struct stream *s, size_t len)
{
	struct call *c = container_of(s, struct call, stream);

	if (c->state != CALL_ASKED)
		return;
	call_progresses(c);
	if (c->kind->room)
		c->kind->room(c);
}

static void on_call_closed(struct stream *s)
{
	struct filter *f = container_of(s, struct call, stream)->filter;

	f->open--;
	free_if_over(f);
}

static const struct stream_ops stream_ops = {
	.on_data = on_call_data,
	.on_end = on_call_end,
	.on_written = on_call_written,
	.on_connected = on_call_connected,
	.on_closed = on_call_closed,
};

/* 0, or a libuv error. */
static int connect_call(struct call *c)
{
	struct filter *f = c->filter;
	const struct sockaddr *to = (const struct sockaddr *)&c->hook->conf->address;
	int r = stream_connect(&c->stream, f->hooks->worker, &stream_ops, to, NULL);

	if (r < 0)
		return r;
	f->open++;
	c->hook->asked++;
	c->state = CALL_RESTS;
	return 0;
}

/* Limits */

static void on_call_deadline(struct deadline *d)
{
	struct call *c = container_of(d, struct call, deadline);

	call_fails(c, "it did not answer in time");
}

void call_progresses(struct call *c)
{
	const uint64_t now_ms = worker_now_ms(c->filter->hooks->worker);
	const uint64_t last_ms = c->filter->last_ms, ms = c->hook->conf->timeout_ms;
	const uint64_t left_ms = last_ms > now_ms ? last_ms - now_ms : 1;

	deadline_set(c->filter->hooks->worker, &c->deadline, ms < left_ms ? ms : left_ms);
}

/* Answers */

static void filter_decide(struct filter *f, enum filter_verdict verdict)
{
	f->verdict = verdict;
	f->asks = f->count;
	worker_at_turn_end(f->hooks->worker, &f->later);
}

static void set_reply(struct filter *f, struct smtp_span reply)
{
	f->reply_len = reply.len < sizeof f->reply ? reply.len : 0;
	memcpy(f->reply, reply.at, f->reply_len);
}

static void note_answer(struct call *c)
{
	deadline_cancel(&c->deadline);
	hook_answered(c->hook);
	c->state = CALL_RESTS;
}

void call_continues(struct call *c)
{
	note_answer(c);
	c->filter->asks++;
	ask_next(c->filter);
}

void call_accepts(struct call *c)
{
	note_answer(c);
	close_call(c, CALL_OVER);
	c->filter->asks++;
	ask_next(c->filter);
}

void call_refuses(struct call *c, struct smtp_span reply)
{
	const bool is_final = reply.at[0] == '5';

	note_answer(c);
	c->hook->refused += is_final;
	c->hook->deferred += !is_final;
	c->filter->hooks->counters->hooks_refused += is_final;
	c->filter->hooks->counters->hooks_deferred += !is_final;
	set_reply(c->filter, reply);
	filter_decide(c->filter, FILTER_REFUSES);
}

void call_discards(struct call *c)
{
	note_answer(c);
	c->hook->discarded++;
	c->filter->hooks->counters->hooks_discarded++;
	filter_decide(c->filter, FILTER_DISCARDS);
}

/* The policy of a hook that gives no answer. */
static void go_without(struct call *c)
{
	struct filter *f = c->filter;

	if (c->hook->conf->on_failure == SMTPPROXY_ACCEPT) {
		close_call(c, CALL_OVER);
		f->asks++;
		ask_next(f);
		return;
	}
	close_call(c, CALL_LOST);
	set_reply(f, smtp_span_of(c->hook->conf->on_failure == SMTPPROXY_TEMPFAIL ? fails_now : fails_for_good));
	filter_decide(f, FILTER_REFUSES);
}

void call_fails(struct call *c, const char *cause)
{
	hook_failed(c->filter->hooks, c->hook, cause);
	if (c->state == CALL_ASKED)
		go_without(c);
	else
		close_call(c, CALL_LOST);
}

/* Questions */

static void ask_call(struct call *c)
{
	struct filter *f = c->filter;
	int r;

	if (c->state == CALL_LOST || (c->state == CALL_NEW && !hook_may_be_asked(f->hooks, c->hook))) {
		go_without(c);
		return;
	}
	r = c->state == CALL_NEW ? connect_call(c) : 0;
	if (r < 0) {
		hook_failed(f->hooks, c->hook, error_text(r));
		go_without(c);
		return;
	}
	c->state = CALL_ASKED;
	call_progresses(c);
	c->kind->ask(c);
}

static void ask_next(struct filter *f)
{
	while (f->asks < f->count) {
		struct call *c = &f->calls[f->asks];

		if (c->state != CALL_OVER && c->kind->steps & 1u << f->step) {
			ask_call(c);
			return;
		}
		f->asks++;
	}
	filter_decide(f, FILTER_CONTINUES);
}

static char *filter_copy(struct smtp_span text)
{
	char *made = malloc(text.len + 1); /* not strndup(): a span has no end of its own */

	if (!made)
		return NULL;
	if (text.len)
		memcpy(made, text.at, text.len);
	made[text.len] = '\0';
	return made;
}

void filter_ask(struct filter *f, enum filter_step step, struct smtp_span address, struct smtp_span params)
{
	f->step = step;
	f->address = address;
	f->params = params;
	f->asks = 0;
	f->last_ms = worker_now_ms(f->hooks->worker) + f->most_ms[step];
	if (step == FILTER_MAIL)
		f->sender = filter_copy(address);
	if (step == FILTER_RCPT) {
		free(f->last_recipient);
		f->last_recipient = filter_copy(address);
	}
	ask_next(f);
}

void filter_ask_message(struct filter *f, struct message *m)
{
	f->message = m;
	filter_ask(f, FILTER_MESSAGE, (struct smtp_span){ 0 }, (struct smtp_span){ 0 });
}

void filter_note_recipient(struct filter *f)
{
	json_t *text = f->last_recipient ? json_string(f->last_recipient) : NULL;

	json_array_append_new(f->recipients, text ? text : json_string("?")); /* not UTF-8 */
}

static void on_later(struct turn_end *t)
{
	struct filter *f = container_of(t, struct filter, later);

	f->fn(f->ctx, f->verdict, (struct smtp_span){ f->reply, f->reply_len });
}

/* Life */

static int copy_facts(struct filter *f, const struct filter_facts *facts)
{
	f->listener = strdup(facts->listener);
	f->destination = strdup(facts->destination);
	f->recipients = json_array();
	f->client = facts->client;
	memcpy(f->most_ms, facts->most_ms, sizeof f->most_ms);
	snprintf(f->hello, sizeof f->hello, "%s", facts->hello);
	snprintf(f->id, sizeof f->id, "%" PRIx64 ".%08" PRIx32, facts->connection, randombytes_random());
	return f->listener && f->destination && f->recipients ? 0 : -1;
}

struct filter *filter_create(struct hooks *hooks, const struct smtpproxy_listener *listener,
	const struct filter_facts *facts, filter_verdict_fn *fn, void *ctx)
{
	struct filter *f = calloc(1, sizeof *f + listener->hook_count * sizeof f->calls[0]);

	if (!f)
		return NULL;
	f->hooks = hooks;
	f->ctx = ctx;
	f->later.fn = on_later;
	if (copy_facts(f, facts) < 0) {
		free_if_over(f);
		return NULL;
	}
	f->fn = fn;
	f->count = (unsigned)listener->hook_count;
	for (unsigned i = 0; i < f->count; i++) {
		struct call *c = &f->calls[i];

		c->filter = f;
		c->hook = hooks_find(hooks, listener->hooks[i]);
		c->kind = kinds[c->hook->conf->type];
		c->deadline.fn = on_call_deadline;
	}
	return f;
}

void filter_leave(struct filter *f)
{
	if (!f)
		return;
	f->fn = NULL;
	turn_end_cancel(&f->later);
	for (unsigned i = 0; i < f->count; i++) {
		struct call *c = &f->calls[i];

		if (c->state == CALL_ASKED && c->hook->state == HOOK_TRIED)
			c->hook->state = HOOK_RESTS; /* nobody waits for this answer: the next call tries it again */
		close_call(c, CALL_OVER);
	}
	free_if_over(f);
}
