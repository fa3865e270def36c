/* dormant.h: descriptors of idle connections, without a stream. When bytes come, the worker tells the holder, which
 * then opens a stream. The only memory for each of them is the kernel's.
 */
#pragma once

struct worker;
struct dormant;

/* @on_input: bytes, an end or an error came on the descriptor of @holder. It is called again in each turn of the loop
 * until the descriptor is removed. It may add and remove descriptors. NULL: out of memory or descriptors. */
struct dormant *dormant_create(struct worker *w, void (*on_input)(void *holder));
/* Not from within on_input; NULL is legal. */
void dormant_destroy(struct dormant *d);

/* The caller still owns @fd, and removes it here before closing it. 0 or a negative libuv error. */
int dormant_add(struct dormant *d, int fd, void *holder);
/* on_input is not called for @holder any more. */
void dormant_remove(struct dormant *d, int fd, const void *holder);
