/* descriptors.h: the limit of descriptors of this process. */
#ifndef CSSL_BENCH_COMMAND_DESCRIPTORS_H
#define CSSL_BENCH_COMMAND_DESCRIPTORS_H

/* Raise the soft limit to the hard one, because each connection is a descriptor. */
void descriptors_raise_limit(void);

#endif
