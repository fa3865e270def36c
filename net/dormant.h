/* dormant.h: descriptors of connections that nobody reads for long: the worker learns that something came, and who
 * reads it then opens a stream. What it costs is in the kernel; here there is nothing for each of them.
 */
#ifndef CSSL_NET_DORMANT_H
#define CSSL_NET_DORMANT_H

#include "net/worker.h"

struct dormant;

/* @on_input: bytes, an end or an error came on the descriptor of @holder; it is called again in each turn until the
 * descriptor is removed. It may add and remove any. NULL: out of memory or descriptors. */
struct dormant *dormant_create(struct worker *w, void (*on_input)(void *holder));
/* Not from within on_input; NULL is legal. */
void dormant_destroy(struct dormant *d);

/* @fd stays the caller's, who removes it before closing it. 0 or a negative libuv error. */
int dormant_add(struct dormant *d, int fd, void *holder);
/* on_input is not called for @holder any more. */
void dormant_remove(struct dormant *d, int fd, const void *holder);

#endif
