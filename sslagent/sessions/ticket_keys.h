/* ticket_keys.h: the keys of TLS 1.2 tickets (listener option tls12_tickets). Any agent may make a key, and all agents
 * know all keys. An agent opens a ticket with the key that the ticket names. It seals with the newest key that has had
 * time to reach all agents. Each ticket is sealed under keys of its own, derived from the cluster's key and the
 * ticket's iv. The keys are in guarded memory, never on disk. Thread-safe. */
#pragma once

#include "sslagent/tls/session_source.h"

#define TICKET_KEY_NAME_LEN 16u
#define TICKET_KEYS_MAX     32u

struct ticket_keys;

/* @life_ms: how long a key opens tickets. NULL: out of memory. */
struct ticket_keys *ticket_keys_create(int64_t life_ms);
void ticket_keys_destroy(struct ticket_keys *t);

/* Make a key. */
void ticket_keys_make(struct ticket_keys *t, int64_t now_ms);

struct cluster_ticket_key {
	uint8_t name[TICKET_KEY_NAME_LEN];
	uint8_t secret[32];
	int64_t made_ms;
};
/* Add another agent's key. false: it is new. true: it was known, or is too old. */
bool ticket_keys_add(struct ticket_keys *t, const struct cluster_ticket_key *key, int64_t now_ms);

/* Copy all keys to @out. Returns how many. The caller wipes them. */
unsigned ticket_keys_list(struct ticket_keys *t, struct cluster_ticket_key out[static TICKET_KEYS_MAX]);

/* As session_source.ticket_key. */
int ticket_keys_derive(struct ticket_keys *t, const uint8_t *name, const uint8_t salt[static 16], int64_t now_ms,
	struct ticket_key *out);

/* Age of the newest key; INT64_MAX: there is none. */
int64_t ticket_keys_newest_age_ms(struct ticket_keys *t, int64_t now_ms);
void ticket_keys_expire(struct ticket_keys *t, int64_t now_ms);
