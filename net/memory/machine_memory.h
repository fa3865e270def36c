/* machine_memory.h: how much memory this process may use: the memory of the machine, or the limit of its control group
 * if that is less.
 */
#pragma once

#include <stdint.h>

/* In bytes; 0: not known. @root: the folder of proc/ and sys/: "" for those of the machine, another one in tests. The
 * smallest limit of all groups around this process counts, of version 2 (memory.max) and version 1
 * (memory.limit_in_bytes). */
uint64_t machine_memory(const char *root);
