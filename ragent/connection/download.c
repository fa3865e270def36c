/* download.c: one sealed block of bytes. */
#include "ragent/connection/download.h"

#include <string.h>

#include "proto/error.h"

int download_make(struct download **d, struct fine_blocks *from, const uint8_t *data, size_t len)
{
	if (len == 0 || len > DOWNLOAD_MAX_LEN)
		return CSSL_E_TOO_LONG;
	struct download *fresh = fine_block_take(from, sizeof *fresh + len);
	if (!fresh)
		return CSSL_E_NO_MEMORY;
	fresh->len = (uint32_t)len;
	memcpy(fresh->data, data, len);
	*d = fresh;
	return 0;
}

void download_drop(struct download **d, struct fine_blocks *from)
{
	if (*d)
		fine_block_give(from, *d, download_len(*d));
	*d = NULL;
}
