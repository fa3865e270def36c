/* ids.h: what names a connection, a family of sessions, an export and a client. Bytes only. */
#pragma once

#include <stdint.h>

#define CONNECTION_ID_LEN 16u
#define FAMILY_ID_LEN     16u /* of all sessions that stem from one full handshake */
#define ADOPT_TOKEN_LEN   16u /* of one export of a live part */

struct connection_id {
	uint8_t bytes[CONNECTION_ID_LEN];
};

struct client_address {
	uint8_t bytes[16];
	uint8_t len; /* 4 or 16; 0: unknown */
};
