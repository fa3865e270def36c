/* descriptors.h: how many files and sockets this process may have. */
#ifndef CSSL_BENCH_COMMAND_DESCRIPTORS_H
#define CSSL_BENCH_COMMAND_DESCRIPTORS_H

/* To the hard limit: every connection is a descriptor. */
void descriptors_raise_limit(void);

#endif
