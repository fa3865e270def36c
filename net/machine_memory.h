/* machine_memory.h: how much memory this process may use: that of the machine, or of its control group where that is
 * less.
 */
#ifndef CSSL_NET_MACHINE_MEMORY_H
#define CSSL_NET_MACHINE_MEMORY_H

#include <stdint.h>

/* In bytes; 0: not known. @root: in front of /proc and /sys, "" for this machine's (tests have folders of their own).
 * Of the groups around this process, version 2 (memory.max) and version 1 (memory.limit_in_bytes), the smallest limit
 * counts. */
uint64_t machine_memory(const char *root);

#endif
