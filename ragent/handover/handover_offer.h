/* handover_offer.h: what the old process says of itself before anything is taken, and what the new one, with its own
 * cluster file, finds in that: what numbers mean here, or why it cannot go on with what is there.
 */
#ifndef CSSL_RAGENT_HANDOVER_OFFER_H
#define CSSL_RAGENT_HANDOVER_OFFER_H

#include "ragent/connection/connection_handover.h"
#include "ragent/handover/handover_message.h"
#include "ragent/worker/passed_sockets.h"

/* For tests: be a release that knows no format after @format. */
void handover_know_no_later_format(unsigned format);

/* HELLO. 0 or CSSL_E_NO_MEMORY. */
int handover_hello_pack(struct handover_message *m);
/* The latest format that both know: > 0; or CSSL_E_VERSION, or malformed. */
int handover_hello_read(const struct handover_message *m);

/* OFFER. 0 or CSSL_E_NO_MEMORY. */
int handover_offer_pack(
	struct handover_message *m, unsigned format, const struct ragent_shared *shared, unsigned workers);
/* 0 with @map, which handover_map_clear() empties, and the boot id, which is that of @shared from now on; or negative
 * with a sentence in @error. */
int handover_offer_read(const struct handover_message *m, struct ragent_shared *shared, struct handover_map *map,
	char *error, size_t error_cap);
void handover_map_clear(struct handover_map *map);

/* SOCKETS: one more, or all that came. 0, CSSL_E_NO_MEMORY, or malformed. */
int handover_socket_pack(struct handover_message *m, const char *key, unsigned worker, int fd);
int handover_sockets_read(struct handover_message *m, struct passed_sockets *out);

#endif
