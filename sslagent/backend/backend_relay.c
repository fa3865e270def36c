/* backend_relay.c: two queues around smtp/relay.h. */
#include "sslagent/backend/backend_relay.h"

#include <stdlib.h>
#include <string.h>

#include "net/container_of.h"
#include "proto/error.h"
#include "smtp/relay.h"

struct queue {
	uint8_t *data;
	size_t len, cap;
};

struct backend_relay {
	struct worker *worker;
	struct stream *out;
	struct backend *backend;
	void (*wake)(struct backend *b);
	struct turn_end turn;
	struct queue waiting, answer; /* of the user, for the user */
	size_t taken;
	uint8_t user;   /* enum relay_user */
	uint8_t memory; /* enum relay_memory */
	struct smtp_relay_rules rules;
	struct smtp_relay relay;
};
enum relay_user { USER_SPEAKS, USER_ENDED };
enum relay_memory { MEMORY_THERE, MEMORY_WANTED };

/* What a client behind TLS may not say to a server that trusts us. */
static const uint8_t refused[SMTP_VERB_COUNT] = {
	[SMTP_VERB_STARTTLS] = SMTP_OWN_TLS_ALREADY,
	[SMTP_VERB_XCLIENT] = SMTP_OWN_NOT_TRUSTED,
	[SMTP_VERB_XFORWARD] = SMTP_OWN_NOT_TRUSTED,
	[SMTP_VERB_XCSSLTX] = SMTP_OWN_NOT_TRUSTED,
	[SMTP_VERB_CONNECT] = SMTP_OWN_FOREIGN_PROTOCOL,
	[SMTP_VERB_GET] = SMTP_OWN_FOREIGN_PROTOCOL,
	[SMTP_VERB_POST] = SMTP_OWN_FOREIGN_PROTOCOL,
};

static int put(struct queue *q, const void *data, size_t len)
{
	if (q->len + len > q->cap) {
		uint8_t *more = realloc(q->data, q->len + len);
		if (!more)
			return CSSL_E_NO_MEMORY;
		q->data = more;
		q->cap = q->len + len;
	}
	memcpy(q->data + q->len, data, len);
	q->len += len;
	return 0;
}

static void take_away(struct queue *q, size_t len)
{
	q->len -= len;
	memmove(q->data, q->data + len, q->len);
	if (q->len)
		return;
	free(q->data);
	*q = (struct queue){ 0 };
}

static void to_client(void *ctx, const char *words, size_t len, enum smtp_relay_words what)
{
	struct backend_relay *r = ctx;

	if (put(&r->answer, words, len) < 0)
		r->memory = MEMORY_WANTED;
}

static void to_server(void *ctx, const char *words, size_t len)
{
	struct backend_relay *r = ctx;

	if (stream_write(r->out, words, len) == CSSL_E_NO_MEMORY)
		r->memory = MEMORY_WANTED;
}

static const struct smtp_relay_ops relay_ops = { .to_client = to_client, .to_server = to_server };

static void on_turn_end(struct turn_end *t)
{
	struct backend_relay *r = container_of(t, struct backend_relay, turn);

	r->wake(r->backend);
}

struct backend_relay *backend_relay_create(struct worker *w, struct stream *out, const struct backend_mail *mail,
	void (*wake)(struct backend *b), struct backend *b)
{
	struct backend_relay *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->worker = w;
	r->out = out;
	r->wake = wake;
	r->backend = b;
	r->turn.fn = on_turn_end;
	r->rules = (struct smtp_relay_rules){ .name = mail->name,
		.refused = refused,
		.hidden = SMTP_CAPS_HIDDEN,
		.data_refuse = SMTP_DATA_SMUGGLING,
		.banner = mail->has_banner ? SMTP_BANNER_SWALLOWED : SMTP_BANNER_RENAMED,
		.parse = SMTP_PARSE_LENIENT };
	smtp_relay_begin(&r->relay, &r->rules, &relay_ops, r, NULL);
	return r;
}

void backend_relay_destroy(struct backend_relay *r)
{
	if (!r)
		return;
	turn_end_cancel(&r->turn);
	free(r->waiting.data);
	free(r->answer.data);
	free(r);
}

/* Whatever may go on now. */
static void go_on(struct backend_relay *r)
{
	size_t used = r->waiting.len ? smtp_relay_client(&r->relay, (const char *)r->waiting.data, r->waiting.len) : 0;

	if (used)
		take_away(&r->waiting, used);
	r->taken += used;
	if (r->user == USER_ENDED && r->waiting.len == 0)
		stream_shutdown(r->out);
	worker_at_turn_end(r->worker, &r->turn);
}

int backend_relay_write(struct backend_relay *r, const uint8_t *data, size_t len)
{
	int result = put(&r->waiting, data, len);

	if (result == 0)
		go_on(r);
	return result;
}

void backend_relay_shutdown(struct backend_relay *r)
{
	r->user = USER_ENDED;
	go_on(r);
}

void backend_relay_read(struct backend_relay *r, const uint8_t *data, size_t len)
{
	smtp_relay_server(&r->relay, (const char *)data, len);
	go_on(r);
}

void backend_relay_ended(struct backend_relay *r)
{
	smtp_relay_server_ended(&r->relay);
	worker_at_turn_end(r->worker, &r->turn);
}

void backend_relay_look(struct backend_relay *r)
{
	worker_at_turn_end(r->worker, &r->turn);
}

size_t backend_relay_taken(struct backend_relay *r)
{
	const size_t taken = r->taken;

	r->taken = 0;
	return taken;
}

size_t backend_relay_answer(const struct backend_relay *r, uint8_t **data)
{
	*data = r->answer.data;
	return r->answer.len;
}

void backend_relay_answer_used(struct backend_relay *r, size_t len)
{
	if (len)
		take_away(&r->answer, len);
}

int backend_relay_over(const struct backend_relay *r)
{
	if (r->memory == MEMORY_WANTED)
		return STREAM_RESET;
	if (r->relay.state != SMTP_RELAY_OVER || r->answer.len)
		return -1;
	return r->relay.within ? STREAM_RESET : STREAM_EOF;
}
