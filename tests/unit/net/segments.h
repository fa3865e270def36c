/* segments.h: in a file of its own because <linux/tcp.h> and the header that libuv includes define the same types. */
#ifndef CSSL_TESTS_UNIT_NET_SEGMENTS_H
#define CSSL_TESTS_UNIT_NET_SEGMENTS_H

/* How many segments a TCP socket has received. */
unsigned segments_in(int fd);

#endif
