/* fuzz_session_id.c: an id made from the input is one of ours and shows the values it was made from. The input
 * itself is one only if its check fits. */
#include <string.h>

#include "proto/session_id.h"
#include "proto/wire.h"
#include "tests/fuzz/must.h"

static const uint8_t check_key[SESSION_ID_CHECK_KEY_LEN] = "the check key 16";

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	uint8_t again[SESSION_ID_LEN];
	struct session_id_facts facts;
	int ours = session_id_check(in, len, check_key, &facts) == 0;

	if (len != SESSION_ID_LEN) {
		MUST(!ours);
		return 0;
	}
	uint64_t tick = (uint64_t)in[2] << 16 | wire_load_u16(in + 3);
	session_id_make(again, wire_load_u16(in), tick * SESSION_ID_TICK_S, in + 10, check_key);
	MUST((memcmp(in, again, sizeof(again)) == 0) == ours);
	MUST(session_id_check(again, sizeof(again), check_key, &facts) == 0);
	MUST(facts.origin == wire_load_u16(in) && facts.issued_tick == tick);
	return 0;
}
