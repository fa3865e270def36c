/* limits.h: how many connections there may be, in total and from one source. An IPv4 source is an address, an IPv6
 * source a /64 (one subscriber has at least that). Shared by all workers; thread-safe.
 */
#ifndef CSSL_RAGENT_LIMITS_H
#define CSSL_RAGENT_LIMITS_H

#include "proto/sess_obj.h"

struct limits;

/* 0: no such limit. NULL: out of memory. */
struct limits *limits_create(uint32_t total, uint32_t per_source);
void limits_destroy(struct limits *l);

/* One more connection, or one more of @source. 0, or CSSL_E_FULL: nothing changed. A source of unknown address is not
 * limited. CSSL_E_NO_MEMORY counts as full. */
int limits_enter(struct limits *l);
void limits_leave(struct limits *l);
int limits_enter_source(struct limits *l, const struct client_address *source);
void limits_leave_source(struct limits *l, const struct client_address *source);

uint32_t limits_total(const struct limits *l);

#endif
