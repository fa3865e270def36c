/* udp.h: a UDP socket that sends in batches (sendmmsg) and receives in batches (recvmmsg). */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net/socket/socket.h"

struct worker;

#define UDP_DATAGRAM_MAX 4096u /* longer ones are counted, and not sent or received */

struct udp;

struct udp_ops {
	/* @data may be changed in place. */
	void (*on_datagram)(void *ctx, uint8_t *data, size_t len, const struct sockaddr *from);
	/* The socket is freed. */
	void (*on_closed)(void *ctx);
	/* Test builds: the name of the node at @address for the fault points udp.send and udp.receive; NULL: not known.
	 * May be NULL. Called only while there are fault rules. */
	const char *(*peer_name)(void *ctx, const struct sockaddr *address);
};

/* @receive 0: send only (its on_datagram is never called). NULL with *uv_error. */
struct udp *udp_create(struct worker *w, const struct sockaddr *bind_to, int receive, const struct udp_ops *ops,
	void *ctx, int *uv_error);

/* A socket for udp_create_fd(), bound to @address. With SOCKET_BESIDE (net/socket/socket.h) several workers receive
 * there, and each sender's datagrams always reach the same one. They wait in it from now on. Returns the descriptor or
 * a negative libuv error. */
int udp_bind(const struct sockaddr *address, enum socket_place place);
/* Receive by a descriptor of udp_bind(), which is closed on failure, too. */
struct udp *udp_create_fd(struct worker *w, int fd, const struct udp_ops *ops, void *ctx, int *uv_error);

/* Queue a copy, sent at the end of this turn or when 64 wait. If the kernel's buffer is full, the datagram is dropped
 * and counted; the broadcast repairs such losses.
 */
void udp_send(struct udp *u, const void *data, size_t len, const struct sockaddr *to);
/* Datagrams that were not sent, or that came cut off. */
uint64_t udp_dropped(const struct udp *u);
int udp_address(const struct udp *u, struct sockaddr_storage *out);
/* NULL is legal. What is queued is sent first; on_closed comes later, once; on_datagram no more. */
void udp_close(struct udp *u);
