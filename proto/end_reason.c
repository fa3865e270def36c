/* end_reason.c: the texts of end_reason.h. The number comes from the wire, so it is checked here. */
#include "proto/end_reason.h"

static const char *const texts[] = {
#define X(name, text) [END_##name] = text,
	END_REASONS(X)
#undef X
};

const char *end_reason_text(unsigned reason)
{
	return reason < END_REASON_COUNT ? texts[reason] : "unknown";
}

bool end_reason_is_refusal(unsigned reason)
{
	return reason == END_LIMIT_TOTAL || reason == END_LIMIT_SOURCE || reason == END_LIMIT_HANDSHAKES ||
	       reason == END_LIMIT_PREAMBLES || reason == END_SUSPECTED;
}
