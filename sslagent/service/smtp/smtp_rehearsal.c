/* smtp_rehearsal.c: follows the transaction (smtp/transaction.h) without a server. */
#include "sslagent/service/smtp/smtp_rehearsal.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "proto/error.h"

struct rehearsal {
	const struct smtp_relay_rules *rules;
	const struct smtp_note *note;
	struct smtp_heard *out;
	uint32_t offers;
	uint32_t replies, given; /* replies that the client got; replies that the follower got */
	size_t at;               /* bytes */
	struct smtp_mark here, tx;
	struct smtp_tx follower;
	char client_line[SMTP_RELAY_LINE_MAX], reply_line[64];
};

enum go { GO_ON, GO_DONE };

static enum go rehearsal_conclude(struct rehearsal *r, enum smtp_verdict verdict)
{
	r->out->verdict = verdict;
	return GO_DONE;
}

/* --- replies --- */

static char rehearsal_class_of(const struct rehearsal *r)
{
	return r->given < r->replies && r->given < r->note->classes_len ? r->note->classes[r->given]
									: SMTP_CLASS_POSITIVE;
}

/* Reply to the oldest command without a reply. */
static void rehearsal_reply(struct rehearsal *r)
{
	const struct smtp_tx *t = &r->follower;
	const struct smtp_tx_turn *turn = &t->queue[t->queue_from];
	struct smtp_server_event e;
	size_t taken;
	char text[] = "250 x\r\n";

	if (rehearsal_class_of(r) != SMTP_CLASS_POSITIVE)
		text[0] = rehearsal_class_of(r);
	else if (turn->turn == SMTP_VERB_DATA)
		text[0] = '3';
	smtp_tx_server(&r->follower, text, turn->own ? 0 : strlen(text), &taken, &e);
	r->given++;
}

static void reply_as_far_as_known(struct rehearsal *r)
{
	while (r->given < r->replies && r->follower.queue_len)
		rehearsal_reply(r);
}

/* Gives no reply inside a chunk: the reply to a last chunk comes after its end, which would otherwise not be
 * noticed. */
static void reply_between_chunks(struct rehearsal *r)
{
	if (!smtp_bdat_is_inside(&r->follower.bdat))
		reply_as_far_as_known(r);
}

/* --- what the client said --- */

static enum go rehearsal_on_end(struct rehearsal *r)
{
	const uint32_t replies = r->given + r->follower.queue_len;

	if (replies <= r->replies) {
		reply_as_far_as_known(r);
		r->out->answered_len = r->at;
		r->out->answered_replies = replies;
		return GO_ON;
	}
	r->out->ended_len = r->at;
	r->out->ended_replies = replies;
	r->out->tx = r->tx;
	return rehearsal_conclude(r, r->tx.record ? SMTP_HAS_ENDED : SMTP_IS_LOST);
}

static enum go rehearsal_on_command(struct rehearsal *r, const struct smtp_client_event *e)
{
	const enum smtp_own own = smtp_relay_refusal(r->rules, r->offers, e);
	const uint64_t before = r->follower.number;

	if (own) {
		smtp_tx_answer(&r->follower, e, own);
		return GO_ON;
	}
	if (e->command.verb == SMTP_VERB_AUTH || e->command.verb == SMTP_VERB_UNKNOWN)
		return rehearsal_conclude(r, SMTP_IS_LOST);
	smtp_tx_pass(&r->follower, e);
	if (r->follower.number != before)
		r->tx = r->here; /* as the owner did; a transaction inside a transaction has no name */
	return r->follower.state == SMTP_TX_DOT ? rehearsal_on_end(r) : GO_ON;
}

static enum go rehearsal_on_event(struct rehearsal *r, const struct smtp_client_event *e)
{
	switch (e->kind) {
	case SMTP_CLIENT_MORE:
	case SMTP_CLIENT_CONTENT: return GO_ON;
	case SMTP_CLIENT_COMMAND: return rehearsal_on_command(r, e);
	case SMTP_CLIENT_CONTENT_END: return r->follower.state == SMTP_TX_DOT ? rehearsal_on_end(r) : GO_ON;
	case SMTP_CLIENT_WAIT:
		if (r->follower.queue_len == 0)
			return rehearsal_conclude(r, SMTP_IS_LOST);
		rehearsal_reply(r); /* the owner may have got it */
		return GO_ON;
	case SMTP_CLIENT_AUTH_LINE:
	case SMTP_CLIENT_FLAW: break;
	}
	return rehearsal_conclude(r, SMTP_IS_LOST);
}

static enum go on_piece(struct rehearsal *r, const struct smtp_piece *p)
{
	struct smtp_client_event e;
	enum go go = GO_ON;
	size_t used = p->used, taken;

	while (used < p->len && go == GO_ON) {
		smtp_tx_client(&r->follower, (const char *)p->data + used, p->len - used, &taken, &e);
		used += taken;
		r->at += taken;
		r->here = (struct smtp_mark){ .record = p->record, .at = (uint16_t)(p->at + used) };
		go = rehearsal_on_event(r, &e);
		reply_between_chunks(r);
	}
	return go;
}

static void rehearsal_prepare(struct rehearsal *r)
{
	const struct smtp_tx_rules rules = { .parse = r->rules->parse,
		.data_refuse = r->rules->data_refuse,
		.client_max = sizeof r->client_line,
		.reply_max = sizeof r->reply_line };
	const struct smtp_tx_memory memory = { .client_line = r->client_line, .reply_line = r->reply_line };

	smtp_tx_begin(&r->follower, &rules, &memory, SMTP_TX_BEHIND_BANNER);
	/* if its greeting is among these bytes, the client may know any extension */
	r->offers = r->note->greeting == SMTP_VERB_UNKNOWN ? UINT32_MAX : r->note->offers;
}

int smtp_rehearse(const struct smtp_relay_rules *rules, const struct smtp_note *note, uint32_t replies,
	const struct smtp_pieces *heard, struct smtp_heard *out)
{
	struct rehearsal *r = calloc(1, sizeof *r);
	enum go go = GO_ON;

	if (!r)
		return CSSL_E_NO_MEMORY;
	*out = (struct smtp_heard){ .verdict = SMTP_MAY_BE_REPEATED };
	r->rules = rules;
	r->note = note;
	r->out = out;
	r->replies = replies;
	rehearsal_prepare(r);
	for (const struct smtp_piece *p = heard->first; p && go == GO_ON; p = p->next)
		go = on_piece(r, p);
	if (go == GO_ON)
		reply_as_far_as_known(r); /* a server may refuse a chunk before its end */
	if (go == GO_ON && (r->follower.opaque || r->given < replies))
		out->verdict = SMTP_IS_LOST; /* replies to no command in these bytes */
	sodium_memzero(r, sizeof *r);
	free(r);
	return 0;
}
