/* heard_keys.c: one table finds a key by its random id; each sender has the list of its own. */
#include "sslagent/cluster/broadcast/heard_keys.h"

#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "proto/error.h"
#include "sslagent/counters.h"

static struct heard_key *key_find(const struct table *all, uint64_t id)
{
	struct table_link *link = table_first(all, id);

	return link ? container_of(link, struct heard_key, link) : NULL;
}

static void key_free(struct heard_key *k)
{
	datagram_key_destroy(k->key);
	free(k);
}

static struct heard_key *key_create(struct table *all, struct sender_keys *of, const struct given_key *given)
{
	struct heard_key *k = calloc(1, sizeof *k + (of->workers + 1) * sizeof(struct replay_window));

	if (!k)
		return NULL;
	k->of = of;
	k->key = datagram_key_create(given->id, given->aead, given->secret);
	if (k->key && table_add(all, &k->link, given->id) == 0)
		return k;
	key_free(k);
	return NULL;
}

static void key_remove(struct table *all, struct heard_key *k)
{
	table_remove(all, &k->link);
	key_free(k);
}

int heard_keys_add(struct table *all, struct sender_keys *of, const struct given_key *given)
{
	struct heard_key *k = key_find(all, given->id);

	if (k)
		return k->of == of ? KEY_KNOWN : CSSL_E_STATE;
	k = key_create(all, of, given);
	if (!k)
		return CSSL_E_CRYPTO;
	if (of->count == KEYS_HELD) {
		key_remove(all, of->held[0]);
		memmove(of->held, of->held + 1, (KEYS_HELD - 1) * sizeof of->held[0]);
		of->in_use -= of->in_use > 0;
		of->count--;
	}
	of->held[of->count++] = k;
	if (given->use == KEY_NEXT)
		heard_key_prove(k, NULL);
	else
		of->in_use = of->count - 1;
	return 0;
}

void heard_keys_forget(struct table *all, struct sender_keys *of)
{
	while (of->count > 0)
		key_remove(all, of->held[--of->count]);
}

void heard_key_prove(struct heard_key *k, const uint64_t *first)
{
	for (unsigned worker = 0; worker <= k->of->workers; worker++)
		replay_window_init(&k->windows[worker], first ? first[worker] : 0);
	k->state = KEY_PROVEN;
}

static void key_is_used(const struct heard_key *k)
{
	struct sender_keys *of = k->of;

	for (unsigned i = of->in_use + 1; i < of->count; i++)
		if (of->held[i] == k)
			of->in_use = i;
}

/* The window changes only after the datagram was authenticated: a forged counter must not close it. */
ptrdiff_t heard_keys_open(const struct table *all, const uint8_t *datagram, size_t len, struct heard_datagram *out,
	uint8_t payload[static DATAGRAM_PAYLOAD_MAX])
{
	struct datagram_header h;

	if (datagram_peek(datagram, len, &h) != 0)
		return -COUNT_DATAGRAMS_MALFORMED;
	struct heard_key *k = key_find(all, h.key_id);
	*out = (struct heard_datagram){ k, h.worker, h.counter, h.boot_id };
	if (!k)
		return -COUNT_DATAGRAMS_KEY_UNKNOWN;
	if (h.boot_id != k->of->boot_id)
		return -COUNT_DATAGRAMS_OLD_BOOT;
	if (h.worker > k->of->workers)
		return -COUNT_DATAGRAMS_MALFORMED;
	struct replay_window *window = &k->windows[h.worker];
	if (k->state == KEY_PROVEN && replay_window_check(window, h.counter) != 0)
		return -COUNT_DATAGRAMS_REPLAYED;
	ptrdiff_t payload_len = datagram_open(k->key, datagram, len, payload, DATAGRAM_PAYLOAD_MAX);
	if (payload_len < 0)
		return payload_len == CSSL_E_AUTH ? -COUNT_DATAGRAMS_FORGED : -COUNT_DATAGRAMS_MALFORMED;
	if (k->state == KEY_PROVEN)
		replay_window_commit(window, h.counter);
	key_is_used(k);
	return payload_len;
}
