/* agreed.h: the values that the handshake of a connection agreed on: its owner's first word about it. Its names are
 * read at each move, so they are kept for as long as the connection lives, in a block that is as large as they need.
 */
#pragma once

#include <string.h>

#include "proto/ids.h"
#include "proto/ja4.h"
#include "proto/link.pb-c.h"
#include "proto/session_id.h"
#include "ragent/connection/bytes/blocks.h"

struct agreed {
	uint16_t protocol_version, cipher_suite;
	uint8_t resumed;
	uint8_t session_id_len;
	uint8_t session_id[SESSION_ID_LEN];
	uint8_t family_id[FAMILY_ID_LEN];
	struct ja4 ja4;
	char names[]; /* the ALPN protocol, which frames ask for, and the server's name, each with a NUL */
};

/* All members are zero except the names, which are copied and may contain no zeros. 0, CSSL_E_TOO_LONG (above
 * NAME_MAX_LEN), CSSL_E_NO_MEMORY. The caller owns *@out. */
int agreed_create(struct blocks *from, const char *server_name, size_t server_name_len, const char *alpn,
	size_t alpn_len, struct agreed **out);
/* The same from KEPT or HANDED_OFF. Also CSSL_E_RANGE: a value has another length than such values have. */
int agreed_read(struct blocks *from, const Cssl__Handshake *h, struct agreed **out);
/* @from as it was made; NULL is legal for @a. */
void agreed_destroy(struct blocks *from, struct agreed *a);

static inline const char *agreed_alpn(const struct agreed *a)
{
	return a->names;
}
static inline const char *agreed_server_name(const struct agreed *a)
{
	return a->names + strlen(a->names) + 1;
}
