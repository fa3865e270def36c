/* reply_room.c: a list of chunks, each twice as large as the one before. The last one is kept for the next reply. */
#include "smtpproxy/queue/backup/reply_room.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_FIRST (16u << 10) /* bytes */
#define CHUNK_KEPT  (2u << 20)
#define ALIGNMENT   _Alignof(max_align_t)

struct reply_chunk {
	struct reply_chunk *before;
	size_t cap, len;
	_Alignas(max_align_t) uint8_t data[];
};

/* NULL: out of memory. */
static void *room_take(struct reply_room *r, size_t len)
{
	struct reply_chunk *c = r->last;
	size_t cap = c ? 2 * c->cap : CHUNK_FIRST;

	len = (len + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (!c || c->cap - c->len < len) {
		cap = cap < len ? len : cap;
		c = malloc(sizeof *c + cap);
		if (!c)
			return NULL;
		*c = (struct reply_chunk){ .before = r->last, .cap = cap };
		r->last = c;
	}
	c->len += len;
	return c->data + c->len - len;
}

static void room_drop(struct reply_chunk **last)
{
	while (*last) {
		struct reply_chunk *c = *last;

		*last = c->before;
		free(c);
	}
}

void reply_room_reuse(struct reply_room *r)
{
	struct reply_chunk *c = r->last;

	if (!c)
		return;
	if (c->cap > CHUNK_KEPT || (c->cap > CHUNK_FIRST && c->len < c->cap / 16)) {
		room_drop(&r->last);
		return;
	}
	room_drop(&c->before);
	c->len = 0;
}

void reply_room_clear(struct reply_room *r)
{
	room_drop(&r->last);
}

/* --- what libhiredis calls --- */

static redisReply *room_make(const redisReadTask *task, size_t more)
{
	redisReply *reply = room_take(task->privdata, sizeof *reply + more);

	if (!reply)
		return NULL;
	memset(reply, 0, sizeof *reply);
	reply->type = task->type;
	if (task->parent)
		((redisReply *)task->parent->obj)->element[task->idx] = reply;
	return reply;
}

static void *make_string(const redisReadTask *task, char *text, size_t len)
{
	redisReply *reply = room_make(task, len + 1);

	if (!reply)
		return NULL;
	reply->str = (char *)(reply + 1);
	reply->len = len;
	memcpy(reply->str, text, len);
	reply->str[len] = '\0';
	return reply;
}

/* A server may say that it has any number of elements. Memory that it does not fill is not touched. */
static void *make_array_of(const redisReadTask *task, size_t elements)
{
	redisReply *reply = NULL;

	if (elements < SIZE_MAX / 2 / sizeof *reply->element)
		reply = room_make(task, elements * sizeof *reply->element);
	if (!reply)
		return NULL;
	reply->element = (redisReply **)(reply + 1);
	reply->elements = elements;
	return reply;
}

static void *make_integer(const redisReadTask *task, long long number)
{
	redisReply *reply = room_make(task, 0);

	if (reply)
		reply->integer = number;
	return reply;
}

/* Its task may be that of a string or of an array. */
static void *make_nil(const redisReadTask *task)
{
	redisReply *reply = room_make(task, 0);

	if (reply)
		reply->type = REDIS_REPLY_NIL;
	return reply;
}

/* All go at once. */
static void room_leave(void *reply)
{
}

#if HIREDIS_MAJOR >= 1
#define make_array make_array_of

/* RESP3, which nobody asks for. */
static void *make_double(const redisReadTask *task, double number, char *text, size_t len)
{
	return make_string(task, text, len);
}

static void *make_bool(const redisReadTask *task, int number)
{
	return make_integer(task, number);
}
#else
static void *make_array(const redisReadTask *task, int elements)
{
	return make_array_of(task, (size_t)elements);
}
#endif

redisReader *reply_room_reader(struct reply_room *r)
{
	static redisReplyObjectFunctions functions = {
		.createString = make_string,
		.createArray = make_array,
		.createInteger = make_integer,
		.createNil = make_nil,
		.freeObject = room_leave,
#if HIREDIS_MAJOR >= 1
		.createDouble = make_double,
		.createBool = make_bool,
#endif
	};
	redisReader *reader = redisReaderCreateWithFunctions(&functions);

	if (reader)
		reader->privdata = r;
	return reader;
}
