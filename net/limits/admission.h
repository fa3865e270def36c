/* admission.h: limits the connections, in total and from one source. An IPv4 source is an address. An IPv6 source is a
 * /64, because a subscriber has at least that. A subscriber may have a /48 with 65,536 of them, so a whole /48 has
 * ADMISSION_OF_SITE times the limit of one source. All workers share it; thread-safe.
 */
#pragma once

#include "proto/ids.h"

#define ADMISSION_OF_SITE 8u

struct admission;

/* A limit of 0: none. NULL: out of memory. */
struct admission *admission_create(uint32_t total, uint32_t per_source);
void admission_destroy(struct admission *a);

/* Change the limits. Neither may be 0 before or afterwards. Existing connections stay. */
void admission_set_limits(struct admission *a, uint32_t total, uint32_t per_source);

/* Count one more connection, or one more of @source. 0; CSSL_E_FULL or CSSL_E_NO_MEMORY: refuse it, nothing has
 * changed. A source of unknown address is not limited. */
int admission_enter(struct admission *a);
/* Likewise, up to so many above the limit: for connections that a crowd of others must not keep out. */
int admission_enter_beyond(struct admission *a, uint32_t above);
void admission_leave(struct admission *a);
int admission_enter_source(struct admission *a, const struct client_address *source);
void admission_leave_source(struct admission *a, const struct client_address *source);

/* Count a connection, or its source, that another process had admitted. Never refused. 0 or CSSL_E_NO_MEMORY. */
void admission_bring(struct admission *a);
int admission_bring_source(struct admission *a, const struct client_address *source);

uint32_t admission_total(const struct admission *a);
