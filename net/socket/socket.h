/* socket.h: what TCP and UDP sockets of this process have in common before libuv gets them. */
#pragma once

#include <sys/socket.h>

/* setsockopt() of an int. 0 or a negative libuv error. */
int socket_option(int fd, int level, int name, int value);

/* Bind @fd to an address, an IPv6 one for IPv6 alone. Several sockets of a process may share an address: the kernel
 * spreads peers over them (SO_REUSEPORT). The first one needs the address alone, so that no second process takes a
 * share, and then lets the others bind beside it. 0 or a negative libuv error. */
enum socket_place { SOCKET_FIRST, SOCKET_BESIDE };
int socket_bind(int fd, const struct sockaddr *address, enum socket_place place);
