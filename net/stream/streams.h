/* streams.h: the streams of one link, and the holder of each. Stream ids rise and are never reused.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct stream_slot {
	uint32_t id; /* 0: free */
	void *holder;
};

/* Embedded; zero is an empty table. */
struct streams {
	struct stream_slot *slots;
	uint32_t cap, count;
};

/* 0 or CSSL_E_NO_MEMORY. @id is new and not 0. */
int streams_add(struct streams *s, uint32_t id, void *holder);
/* NULL: no such stream. */
void *streams_find(const struct streams *s, uint32_t id);
/* Unknown ids are legal. */
void streams_remove(struct streams *s, uint32_t id);
/* Call @fn for each entry, in no order. The table must not change meanwhile. */
void streams_each(const struct streams *s, void (*fn)(void *ctx, uint32_t id, void *holder), void *ctx);
void streams_clear(struct streams *s);
