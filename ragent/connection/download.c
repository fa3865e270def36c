/* download.c: one sealed block of bytes. */
#include "ragent/connection/download.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

int download_set(struct download **d, const uint8_t *data, size_t len)
{
	if (len == 0 || len > DOWNLOAD_MAX_LEN)
		return CSSL_E_TOO_LONG;
	struct download *fresh = malloc(sizeof *fresh + len);
	if (!fresh)
		return CSSL_E_NO_MEMORY;
	fresh->len = (uint32_t)len;
	memcpy(fresh->data, data, len);
	free(*d);
	*d = fresh;
	return 0;
}

void download_drop(struct download **d)
{
	free(*d);
	*d = NULL;
}
