/* handover_offer.h: the old process describes itself before the new one takes anything. The new process compares this
 * offer with its own cluster file. The result maps the old process's numbers to its own, or is the reason why it cannot
 * take over.
 */
#pragma once

#include "ragent/connection/revival/revival.h"
#include "ragent/handover/handover_message.h"
#include "ragent/worker/passed_sockets.h"

/* For tests: act as a release whose latest format is @format. That after this release's has an OFFER with one field
 * more. */
void handover_act_as_release(unsigned format);

/* HELLO. 0 or CSSL_E_NO_MEMORY. */
int handover_hello_pack(struct handover_message *m);
/* The latest format that both know: > 0; or CSSL_E_VERSION, or an error of a malformed message. */
int handover_hello_read(const struct handover_message *m);

/* OFFER. 0 or CSSL_E_NO_MEMORY. */
int handover_offer_pack(
	struct handover_message *m, unsigned format, const struct ragent_shared *shared, unsigned workers);
/* 0: @map is filled (handover_map_clear() empties it), and @shared has the boot id of the offer. Negative: a sentence
 * in @error. */
int handover_offer_read(const struct handover_message *m, struct ragent_shared *shared, struct handover_map *map,
	char *error, size_t error_cap);
void handover_map_clear(struct handover_map *map);

/* SOCKETS: add one socket; or take all sockets of a message. 0, CSSL_E_NO_MEMORY, or an error of a malformed message.
 */
int handover_socket_pack(struct handover_message *m, const char *key, unsigned worker, int fd);
int handover_sockets_read(struct handover_message *m, struct passed_sockets *out);
