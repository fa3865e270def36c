/* sealing.h: an owner's records to the client. It is a part by itself, because only here plaintext becomes ciphertext
 * (but for alerts and KeyUpdates, which live_seal.c makes whole).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct connection;

uint64_t sealing_credit(const struct connection *c);         /* bytes of records the client has room for */
size_t sealing_room(const struct connection *c, size_t len); /* bytes, of @len, that it has room for */
size_t sealing_fragment_max(const struct connection *c);     /* plaintext of one record */
/* Seal [data, data + len) into records of one frame. Returns the bytes sealed. May end the connection. */
size_t sealing_seal(struct connection *c, const uint8_t *data, size_t len);
int sealing_key_update(struct connection *c); /* 0 or negative */
