/* fuzz_messages.c: every protobuf message that comes from outside a process; the first byte chooses which. What unpacks
 * packs to the length it says, and if that unpacks again it packs to the same bytes. (It need not: protobuf-c keeps an
 * unknown field number 0 if its tag has two bytes, packs it with one, and refuses that.) */
#include <protobuf-c/protobuf-c.h>
#include <stdlib.h>
#include <string.h>

#include "proto/broadcast.pb-c.h"
#include "proto/link.pb-c.h"
#include "proto/peer.pb-c.h"
#include "tests/fuzz/must.h"

static const ProtobufCMessageDescriptor *const messages[] = {
	&cssl__broadcast_message__descriptor,
	&cssl__peer_message__descriptor,
	&cssl__link_open__descriptor,
	&cssl__link_ssl_id__descriptor,
	&cssl__link_live__descriptor,
	&cssl__link_adopted__descriptor,
	&cssl__link_refused__descriptor,
	&cssl__link_copy__descriptor,
	&cssl__link_move__descriptor,
	&cssl__link_request__descriptor,
	&cssl__link_response__descriptor,
	&cssl__link_load__descriptor,
	&cssl__link_preamble__descriptor,
};

#define MESSAGE_COUNT (sizeof(messages) / sizeof(messages[0]))

static uint8_t *pack(const ProtobufCMessage *m, size_t *len)
{
	*len = protobuf_c_message_get_packed_size(m);
	uint8_t *out = malloc(*len + 1);
	MUST(out && protobuf_c_message_pack(m, out) == *len);
	return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	size_t first_len, second_len;

	if (len == 0)
		return 0;
	const ProtobufCMessageDescriptor *d = messages[in[0] % MESSAGE_COUNT];
	ProtobufCMessage *m = protobuf_c_message_unpack(d, NULL, len - 1, in + 1);
	if (!m)
		return 0;
	uint8_t *first = pack(m, &first_len);
	protobuf_c_message_free_unpacked(m, NULL);

	m = protobuf_c_message_unpack(d, NULL, first_len, first);
	if (m) {
		uint8_t *second = pack(m, &second_len);
		MUST(first_len == second_len && memcmp(first, second, first_len) == 0);
		protobuf_c_message_free_unpacked(m, NULL);
		free(second);
	}
	free(first);
	return 0;
}
