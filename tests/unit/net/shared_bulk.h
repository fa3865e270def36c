/* shared_bulk.h: two streams through shared memory, and many bytes between them. */
#pragma once

#include "shared_pair.h"

#define BULK ((size_t)2 << 20) /* many times the length of the ring */

extern uint8_t bulk[BULK];     /* of pattern() */
extern struct owner near, far; /* @near is the memory's maker */

/* Runs facts with @bulk filled. The exit status. */
int shared_suite_run(const char *name, const TTest *const *facts, size_t count);
void open_both(void);
void finish_both(void);
/* A length of a wide range, at most @most; the same ones each time. */
size_t some_len(unsigned *state, size_t most);
/* Write [bulk + from, bulk + from + len). */
void write_pattern(struct owner *o, size_t len, size_t from);
/* The first @len bytes of @bulk came, and no other byte. */
void assert_got(const struct owner *o, size_t len);
/* An owner's react: it stops reading at its first bytes. */
void stop_reading(struct owner *o, enum owner_event event);
/* The page of positions: of the maker's ring tail and, 16 further, head; behind each, whether its side waits. The
 * caller unmaps its 4,096 bytes. */
uint32_t *positions_of(const struct owner *o);
