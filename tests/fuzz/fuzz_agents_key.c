/* fuzz_agents_key.c: a ring that parses is written as text and parses to the same; a refused text leaves an empty ring.
 */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "proto/agents_key.h"
#include "tests/fuzz/must.h"

static size_t write_text(const struct key_ring *ring, char *out, size_t cap)
{
	size_t len = 0;
	char hex[2 * KEY_LEN + 1];

	for (unsigned i = 0; i < ring->count; i++) {
		sodium_bin2hex(hex, sizeof(hex), ring->keys[i].key, KEY_LEN);
		len += (size_t)snprintf(out + len, cap - len, "%s %s\n", ring->keys[i].id, hex);
	}
	return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	static const struct key_ring empty;
	struct key_ring first, second;
	char text[KEY_RING_MAX * (KEY_ID_MAX + 2 * KEY_LEN + 3)];
	unsigned line;

	if (key_ring_parse((const char *)in, len, &first, &line) != 0) {
		MUST(memcmp(&first, &empty, sizeof(empty)) == 0);
		MUST(line >= 1 && line <= len + 1);
		return 0;
	}
	MUST(first.count >= 1 && first.count <= KEY_RING_MAX);
	for (unsigned i = 0; i < first.count; i++)
		MUST(key_ring_find(&first, first.keys[i].id, strlen(first.keys[i].id)) == (int)i);
	MUST(key_ring_parse(text, write_text(&first, text, sizeof(text)), &second, &line) == 0);
	MUST(memcmp(&first, &second, sizeof(first)) == 0);
	return 0;
}
