/* queue_servers.c: see queue_servers.h. */
#include "tests/unit/smtpproxy/queue/queue_servers.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/proto/suite.h"

struct queue *q;
struct backup *a, *b;
unsigned asked[BACKUPS][CHANGE_MARK + 1];
uint64_t versions[BACKUPS];
int64_t now_ms;
const struct redis_link_ops *link_ops;

int64_t redis_link_clock_ms(void)
{
	return now_ms;
}

/* A text of a request, which may name a function. */
static void asks(unsigned at, const char *text, size_t len)
{
	static const char *const names[] = { FUNCTION_PUT, FUNCTION_REPLACE, FUNCTION_DELETE, FUNCTION_MARK };

	for (unsigned n = 0; n <= CHANGE_MARK; n++)
		if (len == strlen(names[n]) && !memcmp(text, names[n], len)) {
			asked[at][n]++;
			versions[at] = n == CHANGE_MARK ? UINT64_MAX : versions[at];
		}
}

void redis_link_begin(struct redis_link *l, unsigned arguments)
{
}

void redis_link_number(struct redis_link *l, uint64_t number)
{
	const unsigned at = l == &b->paths[0].link;

	if (versions[at] == UINT64_MAX)
		versions[at] = number;
}

void redis_link_argument(struct redis_link *l, const void *data, size_t len)
{
	asks(l == &b->paths[0].link, data, len);
}

void redis_link_end(struct redis_link *l, uint32_t tag)
{
}

void redis_link_ask(struct redis_link *l, uint32_t tag, const char *const *words)
{
}

int redis_link_open(struct redis_link *l, struct worker *w, const struct redis_link_ops *ops,
	const struct redis_login *login, const struct sockaddr *address)
{
	link_ops = ops;
	return -1;
}

void redis_link_close(struct redis_link *l, const char *why)
{
}

int64_t redis_link_waits_ms(struct redis_link *l, int64_t at_ms)
{
	return 0;
}

static void ignore(void *user)
{
}

static void ignore_due(void *user, const struct queue_destination *d)
{
}

static const struct queue_ops ops = {
	.on_ready = ignore,
	.on_unready = ignore,
	.on_due = ignore_due,
	.on_may_take = ignore,
	.on_deposed = ignore,
	.on_stopped = ignore,
};

void connected(struct backup *s, const char *run_id)
{
	s->active = &s->paths[0];
	s->paths[0].link.state = REDIS_LINK_READY;
	s->generation = 1;
	memcpy(s->run_id, run_id, sizeof s->run_id);
}

void shows_another_key(struct backup *s, const char *run_id, const char *version)
{
	const char *const words[] = { "epoch", "2", "key", "00112233445566778899aabbccddeeff", "run_id", run_id,
		"version", version };
	redisReply texts[SUITE_LEN(words)], *all[SUITE_LEN(words)];
	const redisReply owner = { .type = REDIS_REPLY_ARRAY, .elements = SUITE_LEN(words), .element = all };

	for (unsigned n = 0; n < SUITE_LEN(words); n++) {
		texts[n] = (redisReply){ .type = REDIS_REPLY_STRING, .str = (char *)words[n] };
		all[n] = &texts[n];
	}
	s->looks = 1;
	backup_look_answered(s, ASKED_OWNER, &owner);
}

void begin(void)
{
	static struct key_ring keys;
	struct queue_conf conf = { .name = "test", .keys = &keys };

	ck_assert_int_eq(key_ring_parse("k1 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a", 67,
				 &keys, &(unsigned){ 0 }),
		0);
	ck_assert_int_ge(sodium_init(), 0);
	now_ms = 1000;
	conf.backups[0].path_count = conf.backups[1].path_count = 1;
	q = queue_create(worker_create(0, "queue"), &conf, &ops, NULL);
	ck_assert_ptr_nonnull(q);
	a = &q->backups[0];
	b = &q->backups[1];
	q->state = QUEUE_ACTIVE;
	q->ready = 1;
	q->lease.until_ms = 1 << 30;
	q->shared.epoch = EPOCH;
	q->shared.marker.version = q->recovery.version = 5;
	memcpy(q->shared.marker.members[0], RUN_A, sizeof RUN_A);
	connected(a, RUN_A);
	connected(b, RUN_B);
	a->state = BACKUP_IN_SYNC;
	b->state = BACKUP_COMPARING;
}

struct item *comes(uint64_t id)
{
	struct item *i = item_add(&q->items, ITEM_MESSAGE, id, calloc(1, 100), 100);

	i->to = destination_get(&q->destinations, "a.example", 9, true);
	i->to->count++;
	stock_push(q, CHANGE_PUT, i, true);
	backup_send(a);
	backup_send(b);
	return i;
}

void is_read(struct backup *s)
{
	s->state = BACKUP_CLAIMED;
	s->shared->ops->on_read(s);
}

void answers(struct backup *s)
{
	const redisReply done = { .type = REDIS_REPLY_INTEGER };

	while (s->line.calls_count) {
		backup_answered(s, ASKED_CALL, now_ms, &done);
		backup_send(s);
	}
}
