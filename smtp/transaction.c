/* transaction.c: states, the queue of commands without a reply, and the questions to a follower. */
#include "smtp/transaction.h"

#include <assert.h>
#include <string.h>

#include "smtp/transaction_inside.h"

#define TO(state) (1u << SMTP_TX_##state)

/* Every state may end: by RSET, a greeting, or a refused MAIL whose followers were pipelined. A server may also accept
 * a MAIL inside a transaction. */
static const unsigned may_move_to[] = {
	[SMTP_TX_NONE] = TO(NONE) | TO(MAIL),
	[SMTP_TX_MAIL] = TO(NONE) | TO(MAIL) | TO(DATA) | TO(CONTENT),
	[SMTP_TX_DATA] = TO(NONE) | TO(MAIL) | TO(CONTENT),
	[SMTP_TX_CONTENT] = TO(NONE) | TO(MAIL) | TO(CONTENT) | TO(DOT),
	[SMTP_TX_DOT] = TO(NONE) | TO(MAIL),
};

void smtp_tx_move(struct smtp_tx *t, enum smtp_tx_state to)
{
	assert(may_move_to[t->state] & 1u << to);
	t->state = to;
}

void smtp_tx_open(struct smtp_tx *t)
{
	smtp_tx_move(t, SMTP_TX_MAIL);
	t->number++;
	t->rcpts = t->rcpts_accepted = t->rcpts_refused = 0;
	t->mail_code = t->classes_len = 0;
	t->message_len = 0;
	t->early = SMTP_TX_NOT_ANSWERED;
	t->bdat = (struct smtp_bdat){ 0 };
}

void smtp_tx_end_message(struct smtp_tx *t, enum smtp_tx_early answer)
{
	smtp_tx_move(t, answer == SMTP_TX_ANSWERED_OPEN ? SMTP_TX_MAIL : SMTP_TX_NONE);
	if (answer == SMTP_TX_ANSWERED_OPEN)
		t->bdat.state = SMTP_BDAT_BETWEEN;
}

void smtp_tx_enqueue(struct smtp_tx *t, unsigned turn, enum smtp_own own, uint8_t mark)
{
	assert(t->queue_len < SMTP_TX_QUEUE_MAX);
	struct smtp_tx_turn *row = &t->queue[(t->queue_from + t->queue_len++) % SMTP_TX_QUEUE_MAX];
	*row = (struct smtp_tx_turn){ (uint8_t)turn, (uint8_t)own, mark };
}

void smtp_tx_begin(struct smtp_tx *t, const struct smtp_tx_rules *rules, const struct smtp_tx_memory *memory,
	enum smtp_tx_start start)
{
	memset(t, 0, sizeof *t);
	t->rules = *rules;
	t->memory = *memory;
	smtp_line_begin(&t->client, rules->client_max, memory->client_line);
	smtp_reply_begin(&t->server, memory->reply_line, rules->reply_max);
	if (start == SMTP_TX_BEFORE_BANNER)
		smtp_tx_enqueue(t, SMTP_TURN_BANNER, SMTP_OWN_NONE, 0);
}

void smtp_tx_hold(struct smtp_tx *t, unsigned holds)
{
	t->holds = (uint8_t)holds;
}

bool smtp_tx_is_checkpoint(const struct smtp_tx *t)
{
	return t->queue_len == 0 && t->state == SMTP_TX_NONE && t->mode == SMTP_TX_COMMANDS && !t->pending &&
	       !t->opaque && smtp_line_is_between(&t->client) && smtp_reply_is_between(&t->server);
}

/* A chunk has its turn from its command on. While its bytes are missing, its turn is the last one. */
bool smtp_tx_end_is_due(const struct smtp_tx *t)
{
	const unsigned under_way = t->mode == SMTP_TX_CHUNK;

	for (unsigned i = 0; i + under_way < t->queue_len; i++) {
		const unsigned turn = t->queue[(t->queue_from + i) % SMTP_TX_QUEUE_MAX].turn;
		if (turn == SMTP_TURN_DOT || turn == SMTP_TURN_BDAT_LAST)
			return true;
	}
	return false;
}

bool smtp_tx_ends(const struct smtp_tx *t, unsigned turn, unsigned code)
{
	if (turn != SMTP_TURN_DOT && turn != SMTP_TURN_BDAT_LAST)
		return false;
	bool no_chunk_was_taken = code / 100 != 2 && (code == 503 || t->rcpts_accepted == 0);
	return turn == SMTP_TURN_DOT || !no_chunk_was_taken || t->mail_code / 100 != 2;
}
