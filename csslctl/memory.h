/* memory.h: memory for a tool that runs once: without memory, it ends. */
#ifndef CSSL_CSSLCTL_MEMORY_H
#define CSSL_CSSLCTL_MEMORY_H

/* Returns @p. If it is NULL, the process ends with a message. */
void *must(void *p);

/* printf into new memory, which the caller frees. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
