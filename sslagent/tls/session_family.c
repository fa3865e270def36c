/* session_family.c: version (1) | family id (16) | unix time (8) | client's address (0, 4 or 16). The time is rewritten
 * to this agent's clock when a session comes in as SESS_OBJ (session_callbacks.c). Only inside tickets it may be from
 * another agent's clock. */
#include "sslagent/tls/session_family.h"

#include <sodium.h>
#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"

#define APPDATA_VERSION 1u
#define APPDATA_LEN_MAX (1u + FAMILY_ID_LEN + 8u + 16u)

int session_family_read(SSL_SESSION *session, struct session_family *out)
{
	void *data = NULL;
	size_t len = 0;

	if (SSL_SESSION_get0_ticket_appdata(session, &data, &len) != 1 || !data)
		return CSSL_E_NOT_FOUND;
	struct wire_reader r = wire_reader(data, len);
	uint8_t version = wire_u8(&r);
	const uint8_t *id = wire_bytes(&r, FAMILY_ID_LEN);
	uint64_t since_s = wire_u64(&r);
	size_t client_len = wire_left(&r);
	if (!id || version != APPDATA_VERSION || (client_len != 0 && client_len != 4 && client_len != 16))
		return CSSL_E_NOT_FOUND;
	const uint8_t *client = wire_bytes(&r, client_len);
	if (wire_reader_end(&r) != 0)
		return CSSL_E_NOT_FOUND;
	*out = (struct session_family){ .since_s = since_s, .state = FAMILY_KNOWN, .client.len = (uint8_t)client_len };
	memcpy(out->id, id, FAMILY_ID_LEN);
	memcpy(out->client.bytes, client, client_len);
	return 0;
}

int session_family_write(SSL_SESSION *session, const struct session_family *family)
{
	uint8_t data[APPDATA_LEN_MAX];
	struct wire_writer w = wire_writer(data, sizeof data);

	wire_put_u8(&w, APPDATA_VERSION);
	wire_put_bytes(&w, family->id, FAMILY_ID_LEN);
	wire_put_u64(&w, family->since_s);
	wire_put_bytes(&w, family->client.bytes, family->client.len);
	return SSL_SESSION_set1_ticket_appdata(session, data, (size_t)wire_writer_len(&w)) == 1 ? 0 : CSSL_E_NO_MEMORY;
}

void session_family_begin(struct session_family *out, uint64_t now_s)
{
	*out = (struct session_family){ .since_s = now_s, .state = FAMILY_KNOWN };
	randombytes_buf(out->id, sizeof out->id);
}

void session_family_from_facts(struct session_family *out, const struct session_facts *facts, uint64_t now_s)
{
	*out = (struct session_family){ .client = facts->client, .state = FAMILY_KNOWN };
	memcpy(out->id, facts->family_id, FAMILY_ID_LEN);
	out->since_s = now_s > facts->family_age_s ? now_s - facts->family_age_s : 0;
}

uint32_t session_family_age_s(const struct session_family *family, uint64_t now_s)
{
	uint64_t age = now_s > family->since_s ? now_s - family->since_s : 0;

	return age > UINT32_MAX ? UINT32_MAX : (uint32_t)age;
}
