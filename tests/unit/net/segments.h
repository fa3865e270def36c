/* segments.h: in a file of its own because <linux/tcp.h> and the header that libuv includes define the same types. */
#pragma once

/* How many segments a TCP socket has received. */
unsigned segments_in(int fd);
