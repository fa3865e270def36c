/* fuzz_blocked.c: blocked networks from another process: what is accepted packs and unpacks to the same; what is
 * refused changes nothing.
 */
#include <string.h>

#include "net/limits/blocked.h"
#include "tests/fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	static struct blocked list, again;
	static uint8_t once[BLOCKED_PACKED_MAX], twice[BLOCKED_PACKED_MAX];
	struct client_address client = { .len = 4 };

	const struct address_net before = { .bytes = { 192, 0, 2 }, .len = 4, .prefix = 24 };

	memset(&list, 0, sizeof list);
	memset(&again, 0, sizeof again);
	MUST(blocked_set(&list, &before, 5, 7) == 0);
	const int r = blocked_unpack(&list, 1, in, len, 7);
	const size_t packed = blocked_pack(&list, 7, once);
	MUST(packed == (r == 0 ? len : BLOCKED_MADE_LEN + 26));
	MUST(blocked_unpack(&again, 1, once, packed, 7) == 0);
	MUST(blocked_pack(&again, 7, twice) == packed);
	MUST(memcmp(once + BLOCKED_MADE_LEN, twice + BLOCKED_MADE_LEN, packed - BLOCKED_MADE_LEN) == 0);
	memcpy(client.bytes, in, len < 4 ? len : 4);
	MUST(blocked_has(&list, &client, 7) == blocked_has(&again, &client, 7));
	return 0;
}
