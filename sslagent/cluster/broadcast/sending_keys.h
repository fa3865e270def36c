/* sending_keys.h: the random key under which this process seals its datagrams, and its successor. It is a part of its
 * own because it alone changes the key in use: the successor goes to the peers first, and is used once all of them hold
 * it, as the caller knows, or after SENDING_KEY_PATIENCE_MS. The main thread rolls; any thread reads. */
#pragma once

#include <stdbool.h>

#include "proto/aead.h"

#define SENDING_KEY_PATIENCE_MS 1000

/* @generation counts the keys of the process, from 1. */
struct sending_key {
	uint32_t generation;
	uint64_t id;
	enum aead aead;
	uint8_t secret[AEAD_SECRET_LEN];
};

struct sending_keys;

/* Create with a first key. NULL: out of memory. */
struct sending_keys *sending_keys_create(void);
void sending_keys_destroy(struct sending_keys *k);

/* Of the current key. Any thread. */
uint32_t sending_keys_generation(const struct sending_keys *k);
/* The current key and, if there is one, its successor. Returns how many. Any thread. The caller wipes @out. */
unsigned sending_keys_list(struct sending_keys *k, struct sending_key out[static 2]);

/* Make a successor. 0; CSSL_E_BUSY: a successor is already on its way. */
int sending_keys_roll(struct sending_keys *k, int64_t now_ms);

/* Use the successor if its time has come. @is_held: every peer that can has confirmed it. True: it is current now. */
bool sending_keys_step(struct sending_keys *k, bool is_held, int64_t now_ms);
