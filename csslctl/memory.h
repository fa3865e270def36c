/* memory.h: a tool that runs once has nothing better to do than to end when memory does. */
#ifndef CSSL_CSSLCTL_MEMORY_H
#define CSSL_CSSLCTL_MEMORY_H

/* @p, which is not NULL; else the process ends with a message. */
void *must(void *p);

/* printf into memory of the caller. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
