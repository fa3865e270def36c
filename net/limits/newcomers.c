/* newcomers.c: a ring in the order of arrival, and how many each source has. */
#include "net/limits/newcomers.h"

#include <string.h>

#include <sodium.h>

#include "net/socket/address.h"

void newcomers_init(struct newcomers *n, const struct newcomers_limits *limits)
{
	memset(n, 0, sizeof *n);
	n->limits = *limits;
	n->ring.next = n->ring.prev = &n->ring;
	randombytes_buf(n->key, sizeof n->key);
}

uint8_t newcomers_source(const struct newcomers *n, int fd, const struct sockaddr *peer)
{
	uint8_t bytes[16 + sizeof(uid_t)], hash[crypto_shorthash_BYTES];
	struct ucred cred;
	socklen_t cred_len = sizeof cred;
	size_t len = 0;

	if (peer->sa_family != AF_UNIX) {
		len = address_bytes(peer, bytes);
	} else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) == 0) {
		memcpy(bytes, &cred.uid, sizeof cred.uid);
		len = sizeof cred.uid;
	}
	crypto_shorthash(hash, bytes, len, n->key);
	return hash[0];
}

static bool has_its_share(const struct newcomers *n, uint8_t source)
{
	return n->of_source[source] >= n->limits.of_source;
}

bool newcomers_full(const struct newcomers *n, uint8_t source)
{
	return n->count >= n->limits.count || has_its_share(n, source);
}

static bool may_give_way(const struct newcomers *n, const struct newcomer *c, uint64_t now_ms, uint32_t turn)
{
	if (c->stage == NEWCOMER_SILENT)
		return turn - c->turn >= NEWCOMER_TURNS;
	return now_ms - c->began_ms >= n->limits.stalled_ms;
}

/* 1: @c rather than @other, which came before. */
static bool rather(const struct newcomers *n, const struct newcomer *c, const struct newcomer *other)
{
	if (c->stage != other->stage)
		return c->stage < other->stage;
	return n->of_source[c->source] > n->of_source[other->source];
}

struct newcomer *newcomers_victim(struct newcomers *n, uint8_t source, uint64_t now_ms, uint32_t turn)
{
	const int own_only = has_its_share(n, source);
	struct newcomer *found = NULL;

	if (!newcomers_full(n, source))
		return NULL;
	for (struct newcomer *c = n->ring.next; c != &n->ring; c = c->next) {
		if ((own_only && c->source != source) || !may_give_way(n, c, now_ms, turn))
			continue;
		if (!found || rather(n, c, found))
			found = c;
	}
	return found;
}

void newcomers_add(struct newcomers *n, struct newcomer *c, uint8_t source, uint64_t now_ms, uint32_t turn)
{
	*c = (struct newcomer){
		.next = &n->ring, .prev = n->ring.prev, .began_ms = now_ms, .turn = turn, .source = source
	};
	c->prev->next = c;
	n->ring.prev = c;
	n->of_source[source]++;
	n->count++;
}

void newcomer_proven(struct newcomer *c, uint64_t now_ms)
{
	c->stage = NEWCOMER_PROVEN;
	c->began_ms = now_ms;
}

void newcomers_remove(struct newcomers *n, struct newcomer *c)
{
	if (!c->next)
		return;
	c->prev->next = c->next;
	c->next->prev = c->prev;
	c->next = c->prev = NULL;
	n->of_source[c->source]--;
	n->count--;
}
