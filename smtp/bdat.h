/* bdat.h: follows the chunks of one message (RFC 3030 2). It counts the bytes of a chunk to its end, also after a
 * refusal, because they are never commands.
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
	uint64_t len;  /* of all chunks that have begun; when they are complete, the message's length */
	uint32_t chunks;
};

/* A BDAT command came; its chunk follows even if the command is refused. 0. Or the chunk is followed but is not part of
 * the message: CSSL_E_STATE: after LAST (RFC 3030 2: 503); CSSL_E_EXHAUSTED: the sum overflows. */
int smtp_bdat_begin(struct smtp_bdat *b, uint64_t chunk_len, int is_last);

/* Follow @len bytes. Returns how many of them belong to the chunk, which is complete when smtp_bdat_is_inside() is 0.
 */
size_t smtp_bdat_follow(struct smtp_bdat *b, size_t len);

static inline int smtp_bdat_is_inside(const struct smtp_bdat *b)
{
	return b->left > 0;
}

#endif
