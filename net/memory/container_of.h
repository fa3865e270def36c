/* container_of.h: from a pointer to an embedded member to the struct around it, for callbacks of deadlines and streams.
 * The compiler warns if the pointer is not of the member's type. */
#pragma once

#include <stddef.h>

/* The second arm of the condition is never evaluated. It is there so that the compiler compares the types. */
#define container_of(pointer, type, member)                                                                            \
	((type *)((char *)(1 ? (pointer) : &((type *)0)->member) - offsetof(type, member)))
