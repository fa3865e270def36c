/* agreed.c: one block for all values. */
#include "ragent/connection/ownership/agreed.h"

#include "proto/error.h"

int agreed_create(struct blocks *from, const char *server_name, size_t server_name_len, const char *alpn,
	size_t alpn_len, struct agreed **out)
{
	const size_t len = sizeof(struct agreed) + server_name_len + alpn_len + 2;

	if (server_name_len > NAME_MAX_LEN || alpn_len > NAME_MAX_LEN)
		return CSSL_E_TOO_LONG;
	struct agreed *a = fine_block_take(from, len);
	if (!a)
		return CSSL_E_NO_MEMORY;
	memset(a, 0, len);
	if (alpn_len)
		memcpy(a->names, alpn, alpn_len);
	if (server_name_len)
		memcpy(a->names + alpn_len + 1, server_name, server_name_len);
	*out = a;
	return 0;
}

void agreed_destroy(struct blocks *from, struct agreed *a)
{
	if (a)
		fine_block_give(from, a, sizeof *a + strlen(agreed_server_name(a)) + strlen(agreed_alpn(a)) + 2);
}
