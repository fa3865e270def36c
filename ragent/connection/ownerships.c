/* ownerships.c: the newest takes the place of the oldest. A look-up reads all of the ring: an operator asks, rarely. */
#include "ragent/connection/ownerships.h"

#include <stdlib.h>
#include <string.h>

struct ownerships {
	uint64_t noted;
	struct ownership at[OWNERSHIPS_KEPT];
};

struct ownerships *ownerships_create(void)
{
	return calloc(1, sizeof(struct ownerships)); /* pages that nothing was noted on take no memory */
}

void ownerships_destroy(struct ownerships *o)
{
	free(o);
}

void ownerships_note(struct ownerships *o, const struct ownership *next)
{
	o->at[o->noted++ % OWNERSHIPS_KEPT] = *next;
}

size_t ownerships_of(
	const struct ownerships *o, const struct connection_id *id, struct ownership out[static OWNERSHIPS_LISTED])
{
	const uint64_t oldest = o->noted > OWNERSHIPS_KEPT ? o->noted - OWNERSHIPS_KEPT : 0;
	size_t count = 0;

	for (uint64_t i = o->noted; i > oldest && count < OWNERSHIPS_LISTED; i--) {
		const struct ownership *found = &o->at[(i - 1) % OWNERSHIPS_KEPT];
		if (memcmp(found->connection.bytes, id->bytes, CONNECTION_ID_LEN) == 0)
			out[count++] = *found;
	}
	for (size_t i = 0; i < count / 2; i++) {
		const struct ownership swapped = out[i];
		out[i] = out[count - 1 - i];
		out[count - 1 - i] = swapped;
	}
	return count;
}

const char *ownership_cause_name(enum ownership_cause c)
{
	static const char *const names[] = {
#define X(NAME, name) [OWNERSHIP_##NAME] = name,
		OWNERSHIP_CAUSES(X)
#undef X
	};

	return names[c];
}
