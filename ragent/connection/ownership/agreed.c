/* agreed.c: one block for all values. */
#include "ragent/connection/ownership/agreed.h"

#include "proto/error.h"
#include "proto/sess_obj.h"

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

int agreed_read(struct blocks *from, const Cssl__Handshake *h, struct agreed **out)
{
	struct agreed *a;

	/* the arrays that these are copied into have no more room, and the agent gave the lengths */
	if (h->session_id.len > SESSION_ID_LEN || (h->family_id.len && h->family_id.len != FAMILY_ID_LEN) ||
		(h->ja4.len && h->ja4.len != sizeof(struct ja4)))
		return CSSL_E_RANGE;
	int r = agreed_create(from, h->server_name, strlen(h->server_name), h->alpn, strlen(h->alpn), &a);
	if (r < 0)
		return r;
	a->protocol_version = (uint16_t)h->protocol_version;
	a->cipher_suite = (uint16_t)h->cipher_suite;
	a->resumed = h->resumed ? 1 : 0;
	a->session_id_len = (uint8_t)h->session_id.len;
	if (h->session_id.len)
		memcpy(a->session_id, h->session_id.data, h->session_id.len);
	if (h->family_id.len)
		memcpy(a->family_id, h->family_id.data, FAMILY_ID_LEN);
	if (h->ja4.len)
		memcpy(&a->ja4, h->ja4.data, sizeof a->ja4);
	*out = a;
	return 0;
}

void agreed_destroy(struct blocks *from, struct agreed *a)
{
	if (a)
		fine_block_give(from, a, sizeof *a + strlen(agreed_server_name(a)) + strlen(agreed_alpn(a)) + 2);
}
