/* fuzz_ownerships.c: the history of owners, from another process: refused input changes nothing, and accepted input
 * packs and unpacks to the same.
 */
#include <stdlib.h>
#include <string.h>

#include "ragent/connection/ownership/ownerships.h"
#include "ragent/dispatch/agents.h"
#include "tests/fuzz/must.h"

#define AGENTS 4

static size_t pack(const struct ownerships *o, uint8_t *out, size_t cap)
{
	struct wire_writer w = wire_writer(out, cap);

	ownerships_pack(o, &w);
	MUST(wire_writer_len(&w) == (ptrdiff_t)ownerships_packed_len(o));
	return ownerships_packed_len(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	static const int agents[AGENTS] = { 0, 1, NO_AGENT, 3 };
	static uint8_t once[64 * 1024], twice[64 * 1024];
	struct ownerships *o = ownerships_create(), *again = ownerships_create();

	if (!o || !again || len > sizeof once) {
		free(o);
		free(again);
		return 0;
	}
	const int r = ownerships_unpack(o, agents, AGENTS, in, len);
	const size_t packed = pack(o, once, sizeof once);
	MUST(packed <= len && (r == 0 || packed == 0));
	MUST(ownerships_unpack(again, agents, AGENTS, once, packed) == 0);
	MUST(pack(again, twice, sizeof twice) == packed && memcmp(once, twice, packed) == 0);
	free(o);
	free(again);
	return 0;
}
