/* udp_inside.h: fault points of datagrams, in test builds. Copies of delayed and reordered datagrams wait here. */
#ifndef CSSL_NET_UDP_INSIDE_H
#define CSSL_NET_UDP_INSIDE_H

#include "net/fault.h"
#include "net/udp.h"

LIST_HEAD(udp_delays, udp_delayed);

typedef void (*udp_delayed_fn)(struct udp *u, uint8_t *data, size_t len, const struct sockaddr *address);

#ifdef CSSL_TEST_POINTS
/* Ask the rules about this datagram. Returns how many copies go on now. A delayed one is given to @later when its time
 * comes.
 */
unsigned udp_fault(struct udp *u, struct udp_delays *delays, const char *point, const uint8_t *data, size_t len,
	const struct sockaddr *address, udp_delayed_fn later);
void udp_delays_drop(struct udp_delays *delays);
#else
#define udp_fault(u, delays, point, data, len, address, later) ((void)(later), 1u)
#define udp_delays_drop(delays)                                ((void)(delays))
#endif

const char *udp_peer_name(const struct udp *u, const struct sockaddr *address);
struct worker *udp_worker(const struct udp *u);

#endif
