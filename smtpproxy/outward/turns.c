/* turns.c: senders in the order of the turns that they had, each with its line of turns. Those that had as many stand
 * in the order in which they came. A sender whose line is empty leaves the ring, and is forgotten when it holds no
 * connection. */
#include "smtpproxy/outward/turns.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

#define TURN_COST (UINT64_C(1) << 20) /* of a turn of weight 1 */
#define LAG_MAX   (2048 * TURN_COST)  /* a sender catches up with no more: seconds of a fast receiver's */

struct turns_sender {
	TAILQ_ENTRY(turns_sender) next;
	TAILQ_HEAD(, turn) line;
	struct client_address address;
	uint32_t weight, held;
	uint64_t had; /* turns, in TURN_COST */
};

void turns_init(struct turns *t)
{
	*t = (struct turns){ .places = 1 };
	TAILQ_INIT(&t->ring);
	TAILQ_INIT(&t->rest);
}

static struct turns_sender *turns_ring_find(const struct turns_ring *ring, const struct client_address *address)
{
	struct turns_sender *s;
	TAILQ_FOREACH(s, ring, next)
	{
		if (s->address.len == address->len && memcmp(s->address.bytes, address->bytes, address->len) == 0)
			return s;
	}
	return NULL;
}

static void enter_ring(struct turns *t, struct turns_sender *s)
{
	struct turns_sender *before;
	TAILQ_FOREACH_REVERSE(before, &t->ring, turns_ring, next)
	{
		if (before->had <= s->had)
			break;
	}
	if (before)
		TAILQ_INSERT_AFTER(&t->ring, before, s, next);
	else
		TAILQ_INSERT_HEAD(&t->ring, s, next);
	t->senders++;
}

static void leave_ring(struct turns *t, struct turns_sender *s)
{
	TAILQ_REMOVE(&t->ring, s, next);
	t->senders--;
}

static struct turns_sender *turns_join(struct turns *t, const struct client_address *address, uint32_t weight)
{
	struct turns_sender *s = turns_ring_find(&t->rest, address);
	if (s) {
		TAILQ_REMOVE(&t->rest, s, next);
		t->resting--;
		enter_ring(t, s);
		return s;
	}
	s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->address = *address;
	s->weight = weight;
	s->had = t->had;
	TAILQ_INIT(&s->line);
	enter_ring(t, s);
	return s;
}

#define PREFIX_BYTES 8u /* of IPv6 */

static struct client_address network_of(const struct client_address *sender)
{
	struct client_address network = *sender;
	if (network.len == 16)
		memset(network.bytes + PREFIX_BYTES, 0, sizeof network.bytes - PREFIX_BYTES);
	return network;
}

int turns_add(struct turns *t, struct turn *turn, const struct client_address *sender, uint32_t weight)
{
	const struct client_address network = network_of(sender);
	struct turns_sender *s = turns_ring_find(&t->ring, &network);
	if (!s)
		s = turns_join(t, &network, weight);
	if (!s)
		return CSSL_E_NO_MEMORY;
	TAILQ_INSERT_TAIL(&s->line, turn, next);
	turn->sender = s;
	t->count++;
	return 0;
}

void turns_remove(struct turns *t, struct turn *turn)
{
	struct turns_sender *s = turn->sender;
	if (!s)
		return;
	TAILQ_REMOVE(&s->line, turn, next);
	turn->sender = NULL;
	t->count--;
	if (!TAILQ_EMPTY(&s->line))
		return;
	leave_ring(t, s);
	if (s->held == 0) {
		free(s);
		return;
	}
	TAILQ_INSERT_TAIL(&t->rest, s, next);
	t->resting++;
}

/* Shares */

/* Connections of a sender of that weight; at least one. */
static uint32_t turns_share(const struct turns *t, uint32_t weight)
{
	const uint32_t senders = t->senders + t->resting;
	return weight * (senders < t->places ? t->places / (senders ? senders : 1) : 1);
}

/* It gets as many whatever the turns were. With the whole share, senders would have the same time in place of the same
 * number of turns: one whose transactions are slow for a moment could not catch up. */
static uint32_t sure_share(const struct turns *t, uint32_t weight)
{
	return (turns_share(t, weight) + 1) / 2;
}

/* NULL: each waiting sender holds as many. */
static struct turns_sender *find_below(const struct turns *t, uint32_t (*many)(const struct turns *t, uint32_t weight))
{
	struct turns_sender *s;
	TAILQ_FOREACH(s, &t->ring, next)
	{
		if (s->held < many(t, s->weight))
			break;
	}
	return s;
}

/* No place stays unused: if all hold that much, the head of the ring gets more. */
static struct turns_sender *first_sender(const struct turns *t)
{
	struct turns_sender *s = find_below(t, sure_share);
	return s ? s : TAILQ_FIRST(&t->ring);
}

bool turns_has_too_many(const struct turns *t, const struct turns_sender *holder)
{
	return holder->held > turns_share(t, holder->weight) && find_below(t, turns_share) != NULL;
}

void turns_give_back(struct turns *t, struct turns_sender *holder)
{
	if (!holder)
		return;
	holder->held--;
	if (holder->held > 0 || !TAILQ_EMPTY(&holder->line))
		return;
	TAILQ_REMOVE(&t->rest, holder, next);
	t->resting--;
	free(holder);
}

/* Turns */

struct turn *turns_first(const struct turns *t)
{
	const struct turns_sender *s = first_sender(t);
	return s ? TAILQ_FIRST(&s->line) : NULL;
}

struct turn *turns_find(const struct turns *t, int (*fits)(const struct turn *turn, const void *what), const void *what)
{
	struct turns_sender *s;
	struct turn *turn;
	TAILQ_FOREACH(s, &t->ring, next)
	{
		TAILQ_FOREACH(turn, &s->line, next)
		{
			if (fits(turn, what))
				return turn;
		}
	}
	return NULL;
}

static void turns_charge(struct turns *t, struct turns_sender *s)
{
	const uint64_t least = t->had > LAG_MAX ? t->had - LAG_MAX : 0, had = s->had > least ? s->had : least;
	if (had > t->had)
		t->had = had;
	s->had = had + TURN_COST / s->weight;
}

struct turn *turns_take(struct turns *t)
{
	struct turns_sender *s = first_sender(t);
	if (!s)
		return NULL;
	struct turn *turn = TAILQ_FIRST(&s->line);
	turn->holder = s;
	s->held++;
	turns_charge(t, s);
	leave_ring(t, s);
	enter_ring(t, s);
	turns_remove(t, turn);
	return turn;
}
