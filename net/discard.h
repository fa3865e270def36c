/* discard.h: for how long a connection that is over reads and drops what its client sends. A close before that would
 * reset a client that is still sending, and a reset throws away what it has not read: the alert or the answer that says
 * why this is over (RFC 9112 9.6).
 */
#ifndef CSSL_NET_DISCARD_H
#define CSSL_NET_DISCARD_H

#include <stdint.h>

#define DISCARD_PAUSE_MS     1000u /* without a byte from the client, it is closed */
#define DISCARD_MS           30000u
#define DISCARD_CLIENT_MAX   (256u << 20) /* it may send all of an upload before it reads that it was in vain */
#define DISCARD_STRANGER_MAX (64u << 10)  /* the rest of what it said in place of a handshake */

enum discard_of { DISCARD_OF_STRANGER, DISCARD_OF_CLIENT };

/* @bytes were dropped in the @ms since the first of them came: 1, go on; 0: close. */
static inline int discard_goes_on(enum discard_of who, uint64_t bytes, uint64_t ms)
{
	return bytes <= (who == DISCARD_OF_CLIENT ? DISCARD_CLIENT_MAX : DISCARD_STRANGER_MAX) && ms <= DISCARD_MS;
}

#endif
