/* agent_identity.h: the peers of a backend connection: the agent, by its source address, and the agent's client, by the
 * PROXY header. They are kept as header lines, which all answers get:
 *
 *     X-CSSL-Agent: a1                          the map says whose address the connection came from
 *     X-CSSL-Client: 192.0.2.7:51234            PROXY source
 *     X-CSSL-SNI: www.cssl.test                 PP2_TYPE_AUTHORITY
 *     X-CSSL-ALPN: http/1.1                     PP2_TYPE_ALPN
 *     X-CSSL-TLS: TLSv1.3 TLS_AES_128_GCM_SHA256 certificate=session cn=alice      PP2_TYPE_SSL
 *     X-CSSL-Connection: 0011...                PP2_TYPE_UNIQUE_ID, hexadecimal
 */
#pragma once

#include <stddef.h>
#include <sys/socket.h>

#include "proto/proxy_header.h"

#define AGENT_NAME_MAX 32u
#define AGENT_MAP_MAX  64u

struct agent_map {
	unsigned count;
	struct {
		char name[AGENT_NAME_MAX + 1];
		struct sockaddr_storage address;
	} rows[AGENT_MAP_MAX];
};

/* "a1=127.0.1.1". 0, CSSL_E_CONFIG or CSSL_E_FULL. */
int agent_map_add(struct agent_map *m, const char *text);

struct agent_identity {
	size_t len;
	char lines[1024];
};

void agent_identity_from_socket(struct agent_identity *id, const struct agent_map *m, const struct sockaddr *peer);
/* Add the facts of the PROXY header. Bytes that a header line must not have become '?'. */
void agent_identity_add_proxy(struct agent_identity *id, const struct proxy_header *h);
