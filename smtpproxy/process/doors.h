/* doors.h: the listening sockets, one for each listener of the file. A socket stays open when the file is read again,
 * and when another process takes it over, so that no connection is refused meanwhile.
 */
#pragma once

#include "smtpproxy/sender/session.h"

struct handover;
struct inheritance;
struct doors;

/* Sessions begin in @home. @on_closed comes for each socket that has closed. Free it behind their closing. NULL: out of
 * memory. */
struct doors *doors_create(struct sender_home *home, void (*on_closed)(void *ctx), void *ctx);

/* Listen on every listener of @conf that is not open yet, with the sockets of @in (NULL: none) where it has them. 0,
 * or CSSL_E_SYSTEM or CSSL_E_NO_MEMORY with @error: nothing has changed. */
int doors_open(struct doors *d, const struct conf_smtpproxy *conf, struct inheritance *in, char *error, size_t cap);
/* All listeners of @conf are open: they follow it from now on, and all others close. */
void doors_follow(struct doors *d, const struct conf_smtpproxy *conf);

/* All of them refuse connections, those that are opened later, too, until doors_listen(). */
void doors_refuse(struct doors *d);
void doors_listen(struct doors *d);

/* Give each that is open to another process. */
void doors_give(const struct doors *d, struct handover *to);

/* Accept no more. */
void doors_close(struct doors *d);
/* Sockets that are not closed yet. */
unsigned doors_left(const struct doors *d);
