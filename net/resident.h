/* resident.h: how much memory of this process is in RAM, for its metrics. */
#ifndef CSSL_NET_RESIDENT_H
#define CSSL_NET_RESIDENT_H

#include <stdint.h>

uint64_t resident_bytes(void); /* 0: the kernel does not say */

#endif
