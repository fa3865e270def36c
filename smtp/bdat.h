/* bdat.h: follows the chunks of one message (RFC 3030 2). Whatever a server answers, the bytes of a chunk are no
 * commands: they are counted to their end.
 */
#ifndef CSSL_SMTP_BDAT_H
#define CSSL_SMTP_BDAT_H

#include <stddef.h>
#include <stdint.h>

enum smtp_bdat_state {
	SMTP_BDAT_NONE,    /* no chunk has begun */
	SMTP_BDAT_CHUNK,   /* bytes of a chunk are to come */
	SMTP_BDAT_BETWEEN, /* the next chunk may begin */
	SMTP_BDAT_LAST,    /* bytes of the last chunk are to come */
	SMTP_BDAT_OVER,    /* the last chunk is complete */
};

/* Embedded; zero is NONE. */
struct smtp_bdat {
	enum smtp_bdat_state state;
	uint64_t left; /* of this chunk */
	uint64_t len;  /* of all chunks that began, which is the message's length when they are complete */
	uint32_t chunks;
};

/* A BDAT command came; its chunk follows even when it is refused. 0; CSSL_E_STATE behind LAST (RFC 3030 2: 503);
 * CSSL_E_EXHAUSTED when the sum overflows. In both cases the chunk is followed, and is none of the message. */
int smtp_bdat_begin(struct smtp_bdat *b, uint64_t chunk_len, int is_last);

/* How many of @len bytes belong to the chunk; follows them. The chunk is complete when smtp_bdat_is_inside() ends. */
size_t smtp_bdat_follow(struct smtp_bdat *b, size_t len);

static inline int smtp_bdat_is_inside(const struct smtp_bdat *b)
{
	return b->left > 0;
}

#endif
