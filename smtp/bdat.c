/* bdat.c: counting. */
#include "smtp/bdat.h"

#include <assert.h>

#include "proto/error.h"

static const enum smtp_bdat_state behind[] = {
	[SMTP_BDAT_NONE] = SMTP_BDAT_NONE,
	[SMTP_BDAT_CHUNK] = SMTP_BDAT_BETWEEN,
	[SMTP_BDAT_BETWEEN] = SMTP_BDAT_BETWEEN,
	[SMTP_BDAT_LAST] = SMTP_BDAT_OVER,
	[SMTP_BDAT_OVER] = SMTP_BDAT_OVER,
};

int smtp_bdat_begin(struct smtp_bdat *b, uint64_t chunk_len, int is_last)
{
	assert(b->left == 0);
	b->left = chunk_len;
	if (b->state == SMTP_BDAT_OVER)
		return CSSL_E_STATE;
	if (chunk_len > UINT64_MAX - b->len)
		return CSSL_E_EXHAUSTED;
	b->len += chunk_len;
	b->chunks++;
	b->state = is_last ? SMTP_BDAT_LAST : SMTP_BDAT_CHUNK;
	if (chunk_len == 0)
		b->state = behind[b->state];
	return 0;
}

size_t smtp_bdat_follow(struct smtp_bdat *b, size_t len)
{
	size_t taken = len < b->left ? len : (size_t)b->left;
	if (taken == 0)
		return 0;
	b->left -= taken;
	if (b->left == 0)
		b->state = behind[b->state];
	return taken;
}
