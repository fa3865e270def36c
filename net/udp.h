/* udp.h: a UDP socket that sends in batches (sendmmsg) and receives in batches (recvmmsg). */
#ifndef CSSL_NET_UDP_H
#define CSSL_NET_UDP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net/worker.h"

#define UDP_DATAGRAM_MAX 4096u /* longer ones are neither sent nor received, but counted */

struct udp;

struct udp_ops {
	/* @data may be changed in place. */
	void (*on_datagram)(void *ctx, uint8_t *data, size_t len, const struct sockaddr *from);
	/* The socket is freed. */
	void (*on_closed)(void *ctx);
	/* Test builds: the name of the node at @address for the fault points udp.send and udp.receive, NULL: not known.
	 * May be NULL. Asked only while fault rules stand. */
	const char *(*peer_name)(void *ctx, const struct sockaddr *address);
};

/* @receive 0: send only (its on_datagram is never called). NULL with *uv_error. */
struct udp *udp_create(struct worker *w, const struct sockaddr *bind_to, int receive, const struct udp_ops *ops,
	void *ctx, int *uv_error);
/* Queue a copy for the end of this turn (or until 64 wait). Full kernel buffers drop and count: the broadcast repairs.
 */
void udp_send(struct udp *u, const void *data, size_t len, const struct sockaddr *to);
/* Datagrams that were not sent, or came cut off. */
uint64_t udp_dropped(const struct udp *u);
int udp_address(const struct udp *u, struct sockaddr_storage *out);
/* NULL is legal. What is queued is sent first; on_closed comes later, once; on_datagram no more. */
void udp_close(struct udp *u);

#endif
