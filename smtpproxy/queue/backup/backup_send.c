/* backup_send.c: the changes of a backup as calls of its functions, and their answers. */
#include "smtpproxy/queue/backup/backup_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/container_of.h"
#include "net/log.h"
#include "net/log_pace.h"
#include "proto/error.h"

#define LINE_SLOW  (1u << 20) /* for a backup that does not count yet */
#define LINE_SHORT 1024u      /* changes; a FILLING backup then asks for more */

static const char *const functions[] = {
	[CHANGE_PUT] = FUNCTION_PUT,
	[CHANGE_REPLACE] = FUNCTION_REPLACE,
	[CHANGE_DELETE] = FUNCTION_DELETE,
	[CHANGE_MARK] = FUNCTION_MARK,
};

void backup_call_begin(struct backup *b, const char *function, unsigned more)
{
	struct redis_link *l = &b->active->link;
	char token[48];

	snprintf(token, sizeof token, "%" PRIu64 ".%" PRIu64, b->shared->epoch, b->generation);
	redis_link_begin(l, 6 + more);
	redis_link_text(l, "FCALL");
	redis_link_text(l, function);
	redis_link_text(l, "2");
	redis_link_text(l, b->shared->owner_key);
	redis_link_text(l, b->shared->items_key);
	redis_link_text(l, token);
}

/* What a call has of a change: name and value of the item, and of its state. */
enum { ITEM_NAME = 1, ITEM_VALUE = 2, STATE_NAME = 4, STATE_VALUE = 8 };

static unsigned parts_of(const struct change *c)
{
	switch (c->kind) {
	case CHANGE_PUT: return ITEM_NAME | ITEM_VALUE | (c->item->note ? STATE_NAME | STATE_VALUE : 0);
	case CHANGE_REPLACE: return STATE_NAME | STATE_VALUE;
	case CHANGE_DELETE: return ITEM_NAME | (c->item->kind == ITEM_MESSAGE ? STATE_NAME : 0);
	case CHANGE_MARK: break;
	}
	return 0;
}

static void change_out(struct backup *b, const struct change *c)
{
	struct redis_link *l = &b->active->link;
	const unsigned parts = parts_of(c);
	char field[ITEM_FIELD_LEN];

	if (c->kind == CHANGE_MARK) {
		backup_mark_out(b);
		return;
	}
	item_field(c->item->kind, c->item->id, field);
	if (parts & ITEM_NAME)
		redis_link_argument(l, field, sizeof field);
	if (parts & ITEM_VALUE)
		redis_link_argument(l, c->item->sealed, c->item->sealed_len);
	field[0] = ITEM_STATE;
	if (parts & STATE_NAME)
		redis_link_argument(l, field, sizeof field);
	if (parts & STATE_VALUE)
		redis_link_argument(l, c->item->note, c->item->note_len);
}

static void call_out(struct backup *b, struct change_call *call)
{
	struct change_line *l = &b->line;
	const enum change_kind kind = change_at(l, l->sent)->kind;
	unsigned more = kind == CHANGE_MARK ? 2 * MARKER_FIELDS : 0;

	for (uint32_t i = 0; i < call->changes; i++)
		more += (unsigned)__builtin_popcount(parts_of(change_at(l, l->sent + i)));
	backup_call_begin(b, functions[kind], more);
	for (uint32_t i = 0; i < call->changes; i++)
		change_out(b, change_at(l, l->sent + i));
	redis_link_end(&b->active->link, ASKED_CALL);
	call->version = b->shared->marker.version;
	change_call_sent(l, call);
	b->stats.calls++;
}

void backup_send(struct backup *b)
{
	struct change_call call;

	/* After a change of paths the server is checked first. Until then nothing may be sent, because the token is
	 * not ours yet. */
	if (!b->active || b->looks || !backup_is_live(b) || b->generation == 0)
		return;
	while (b->active->link.state == REDIS_LINK_READY && change_next_call(&b->line, &call))
		call_out(b, &call);
	if (b->state == BACKUP_FILLING && b->line.count < LINE_SHORT)
		queue_on_room(b);
}

void backup_send_at_turn_end(struct turn_end *t)
{
	backup_send(container_of(t, struct backup, turn));
}

int backup_push(struct backup *b, enum change_kind kind, struct item *i)
{
	int r;

	if (!backup_counts(b) && b->line.count >= LINE_SLOW) { /* it delays no sender, so its line is bounded here */
		b->fill_after_ms = redis_link_clock_ms() + 5000;
		backup_give_up(b, "it is too slow to be filled");
		return CSSL_E_FULL;
	}
	r = change_push(&b->line, kind, i);
	if (r) {
		backup_give_up(b, "out of memory");
		return r;
	}
	worker_at_turn_end(b->shared->worker, &b->turn);
	return 0;
}

/* The changes of one call are done one by one: a callback may give the backup up, and then the line is empty. */
static void call_done(struct backup *b, const struct change_call *call)
{
	for (uint32_t n = 0; n < call->changes && backup_is_live(b); n++) {
		struct change c = change_pop(&b->line);

		b->stats.puts += c.kind == CHANGE_PUT;
		b->stats.replaces += c.kind == CHANGE_REPLACE;
		b->stats.deletes += c.kind == CHANGE_DELETE;
		change_counts(&b->line, c.item)->answered++;
		if (c.kind == CHANGE_MARK && b->state == BACKUP_MARKING) {
			backup_let_in(b, REFUSAL_AT_CALL);
			backup_move(b, BACKUP_IN_SYNC);
		}
		if (c.kind == CHANGE_MARK)
			queue_on_marked(b, call->version);
		else
			queue_on_done(b, c.kind, c.item);
		if (c.item)
			item_drop(c.item);
	}
}

/* The server's memory is full. It did nothing of the call. */
static void call_refused(struct backup *b, const struct change_call *call)
{
	const bool counts = backup_counts(b);

	if (counts)
		log_paced(LOG_WARNING, NULL, "backup is full", "backup=%u changes=%u effect=\"%s\" remedy=\"%s\"",
			b->index, call->changes, "senders get 452 until deliveries make room", "raise its maxmemory");
	for (uint32_t n = 0; n < call->changes && backup_is_live(b); n++) {
		struct change c = change_pop(&b->line);

		b->stats.refused++;
		if (counts)
			queue_on_refused(b, c.item);
		item_drop(c.item);
	}
	if (b->state == BACKUP_FILLING)
		queue_on_full(b);
}

void backup_call_answered(struct backup *b, const redisReply *reply)
{
	struct change_call call;

	if (!backup_is_live(b))
		return;
	if (reply->type == REDIS_REPLY_ERROR &&
		(strncmp(reply->str, "OOM", 3) || change_at(&b->line, 0)->kind != CHANGE_PUT)) {
		backup_call_failed(b, reply->str);
		return;
	}
	call = change_call_answered(&b->line);
	if (reply->type == REDIS_REPLY_ERROR)
		call_refused(b, &call);
	else
		call_done(b, &call);
	if (b->line.count > b->line.sent || b->state == BACKUP_FILLING)
		worker_at_turn_end(b->shared->worker, &b->turn);
}

void backup_call_failed(struct backup *b, const char *error)
{
	uint64_t epoch = strncmp(error, "STALE ", 6) ? 0 : strtoull(error + 6, NULL, 10);

	if (epoch >= b->shared->epoch && b->shared->epoch && epoch) {
		backup_give_up(b, "another gateway owns it");
		backup_move(b, BACKUP_REFUSED);
		queue_on_deposed(b, epoch);
		return;
	}
	if (!strncmp(error, "STALE", 5) || !strncmp(error, "OOM", 3)) /* it lets this gateway in */
		log_event(LOG_WARNING, NULL, "backup refused a call", "backup=%u answer=%s", b->index, error);
	else
		backup_refused(b, REFUSAL_AT_CALL, error);
	backup_give_up(b, "it refused a call");
}

void backup_fill(struct backup *b)
{
	backup_move(b, BACKUP_FILLING);
	worker_at_turn_end(b->shared->worker, &b->turn);
}

void backup_join(struct backup *b)
{
	backup_move(b, BACKUP_MARKING);
}
