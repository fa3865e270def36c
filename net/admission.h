/* admission.h: how many connections there may be, in total and from one source. An IPv4 source is an address, an IPv6
 * source a /64 (one subscriber has at least that). A subscriber may have up to a /48, of 65,536 of them: all of a /48
 * together have ADMISSION_OF_SITE times the limit of one. Shared by all workers; thread-safe.
 */
#ifndef CSSL_NET_ADMISSION_H
#define CSSL_NET_ADMISSION_H

#include "proto/sess_obj.h"

#define ADMISSION_OF_SITE 8u

struct admission;

/* 0: no such limit. NULL: out of memory. */
struct admission *admission_create(uint32_t total, uint32_t per_source);
void admission_destroy(struct admission *a);

/* One more connection, or one more of @source. 0, or CSSL_E_FULL: nothing changed. A source of unknown address is not
 * limited. CSSL_E_NO_MEMORY counts as full. */
int admission_enter(struct admission *a);
void admission_leave(struct admission *a);
int admission_enter_source(struct admission *a, const struct client_address *source);
void admission_leave_source(struct admission *a, const struct client_address *source);

/* A connection that another process had let in, and its source: counted, never refused. 0 or CSSL_E_NO_MEMORY. */
void admission_bring(struct admission *a);
int admission_bring_source(struct admission *a, const struct client_address *source);

uint32_t admission_total(const struct admission *a);

#endif
