/* agreed.c: all values in one block of memory. */
#include "ragent/connection/agreed.h"

#include <stdlib.h>

#include "proto/error.h"

int agreed_create(
	const char *server_name, size_t server_name_len, const char *alpn, size_t alpn_len, struct agreed **out)
{
	if (server_name_len > NAME_MAX_LEN || alpn_len > NAME_MAX_LEN)
		return CSSL_E_TOO_LONG;
	struct agreed *a = calloc(1, sizeof *a + server_name_len + alpn_len + 2);
	if (!a)
		return CSSL_E_NO_MEMORY;
	if (server_name_len)
		memcpy(a->names, server_name, server_name_len);
	if (alpn_len)
		memcpy(a->names + server_name_len + 1, alpn, alpn_len);
	*out = a;
	return 0;
}
