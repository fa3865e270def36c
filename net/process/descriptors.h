/* descriptors.h: how many descriptors this process may have. */
#pragma once

#include <stdint.h>

#define DESCRIPTORS_BESIDE 256u /* beside those of connections: for listeners, loops, logs, the control API */

/* Raise the limit as far as it goes. If that is less than @needed, a warning tells so; 0: any number will do. */
void descriptors_raise(uint64_t needed);
