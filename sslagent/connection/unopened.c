/* unopened.c: before each record, its header as the carrier parsed it. */
#include "sslagent/connection/unopened.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "proto/error.h"

static int unopened_make_room(struct unopened *u, size_t len)
{
	if (u->len + len > u->cap) {
		uint32_t cap = (uint32_t)(u->len + len);
		uint8_t *bigger = realloc(u->bytes, cap);
		if (!bigger)
			return CSSL_E_NO_MEMORY;
		u->bytes = bigger;
		u->cap = cap;
	}
	return 0;
}

static void unopened_append(struct unopened *u, const void *bytes, size_t len)
{
	memcpy(u->bytes + u->len, bytes, len);
	u->len += (uint32_t)len;
}

int unopened_keep(struct unopened *u, const struct tls_record *records, size_t count, size_t most)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += tls_record_len(&records[i]);
	if (unopened_len(u) + len > most)
		return CSSL_E_FULL;
	int r = unopened_make_room(u, len + count * sizeof records->header);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		unopened_append(u, &records[i].header, sizeof records->header);
		unopened_append(u, records[i].bytes, tls_record_len(&records[i]));
	}
	u->records += (uint32_t)count;
	return 0;
}

uint32_t unopened_record(const struct unopened *u, uint32_t at, struct tls_record *out)
{
	memcpy(&out->header, u->bytes + at, sizeof out->header);
	out->bytes = u->bytes + at + sizeof out->header;
	return at + (uint32_t)(sizeof out->header + tls_record_len(out));
}

void unopened_used(struct unopened *u, uint32_t at, uint32_t count, struct carrier *carrier)
{
	u->len -= at;
	u->records -= count;
	if (u->len) {
		memmove(u->bytes, u->bytes + at, u->len);
		if (at > u->len) /* they were opened in place: wipe the plaintext after the others */
			sodium_memzero(u->bytes + u->len, at - u->len);
		return;
	}
	if (u->bytes)
		sodium_memzero(u->bytes, at);
	free(u->bytes);
	u->bytes = NULL;
	u->cap = 0;
	if (carrier->ops->taken)
		carrier->ops->taken(carrier);
}
