/* container_of.h: from an embedded member back to the struct that holds it, as callbacks of deadlines and streams need
 * it. The compiler refuses a pointer of another type than the member's. */
#ifndef CSSL_NET_CONTAINER_OF_H
#define CSSL_NET_CONTAINER_OF_H

#include <stddef.h>

/* The second arm of the condition is never evaluated: it only compares the types. */
#define container_of(pointer, type, member)                                                                            \
	((type *)((char *)(1 ? (pointer) : &((type *)0)->member) - offsetof(type, member)))

#endif
