/* turns.c: a ring of senders, each with its line of turns. The head of the ring is served until its credit is used up,
 * then it goes to the end with new credit. A sender whose line is empty leaves the ring and keeps no credit. */
#include "smtpproxy/outward/turns.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

struct turns_sender {
	TAILQ_ENTRY(turns_sender) next;
	TAILQ_HEAD(, turn) line;
	struct client_address address;
	uint32_t weight, credit;
};

void turns_init(struct turns *t)
{
	TAILQ_INIT(&t->ring);
	t->count = t->senders = 0;
}

static struct turns_sender *find(const struct turns *t, const struct client_address *address)
{
	struct turns_sender *s;
	TAILQ_FOREACH(s, &t->ring, next)
	{
		if (s->address.len == address->len && memcmp(s->address.bytes, address->bytes, address->len) == 0)
			return s;
	}
	return NULL;
}

static struct turns_sender *join(struct turns *t, const struct client_address *address, uint32_t weight)
{
	struct turns_sender *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->address = *address;
	s->weight = s->credit = weight;
	TAILQ_INIT(&s->line);
	TAILQ_INSERT_TAIL(&t->ring, s, next);
	t->senders++;
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
	struct turns_sender *s = find(t, &network);
	if (!s)
		s = join(t, &network, weight);
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
	TAILQ_REMOVE(&t->ring, s, next);
	t->senders--;
	free(s);
}

struct turn *turns_first(const struct turns *t)
{
	const struct turns_sender *s = TAILQ_FIRST(&t->ring);
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

struct turn *turns_take(struct turns *t)
{
	struct turns_sender *s = TAILQ_FIRST(&t->ring);
	if (!s)
		return NULL;
	struct turn *turn = TAILQ_FIRST(&s->line);
	if (--s->credit == 0) {
		s->credit = s->weight;
		TAILQ_REMOVE(&t->ring, s, next);
		TAILQ_INSERT_TAIL(&t->ring, s, next);
	}
	turns_remove(t, turn);
	return turn;
}
