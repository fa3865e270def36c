/* worker_choice.h: which of an agent's workers has a connection, for as long as that agent has it. */
#ifndef CSSL_RAGENT_WORKER_CHOICE_H
#define CSSL_RAGENT_WORKER_CHOICE_H

#include <stdint.h>

/* For worker @self of RAgent's @ours, at an agent of @theirs workers, by the connection's @hash. */
unsigned worker_choice(unsigned ours, unsigned self, unsigned theirs, uint64_t hash);

#endif
