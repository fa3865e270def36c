/* sending_keys.h: the random key under which this process seals its datagrams, and its successor. It is a part of its
 * own because it alone decides when a key is used: it goes to the peers first, and is used once all of them have
 * confirmed it, or after SENDING_KEY_PATIENCE_MS. The main thread rolls; any thread reads. */
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

/* Create with a first key. @peers: the number of agents. NULL: out of memory. */
struct sending_keys *sending_keys_create(unsigned peers);
void sending_keys_destroy(struct sending_keys *k);

/* Of the current key. Any thread. */
uint32_t sending_keys_generation(const struct sending_keys *k);
/* The current key and, if there is one, its successor. Returns how many. Any thread. The caller wipes @out. */
unsigned sending_keys_list(struct sending_keys *k, struct sending_key out[static 2]);

/* Make a successor. 0; CSSL_E_BUSY: a successor is already on its way. */
int sending_keys_roll(struct sending_keys *k, int64_t now_ms);

void sending_keys_confirmed(struct sending_keys *k, unsigned peer, uint64_t key_id);
/* A peer that lost its memory, or its link, has to confirm again. */
void sending_keys_forget_peer(struct sending_keys *k, unsigned peer);
/* 1 when the peer holds the current key, else 0. */
bool sending_keys_held_by(const struct sending_keys *k, unsigned peer);

/* Use the successor if its time has come. @waits_for(ctx, peer) tells whether to wait for that peer's confirmation. 1:
 * the successor is current now.
 */
bool sending_keys_step(struct sending_keys *k, int (*waits_for)(void *ctx, unsigned peer), void *ctx, int64_t now_ms);
