/* decided.h: the last replies of transactions that a cluster may ask for (doc/xcssltx.md), by name and by age. A part
 * of its own, because whether a transaction "never was" must not depend on what else the queue holds.
 *
 * Embedded; all zero: empty. Others may read the members, and write the two times.
 */
#pragma once

#include "smtpproxy/queue/items/content.h"

struct seal;

struct decided {
	struct item **buckets;
	struct item *oldest, *newest; /* with a reference each; some may have left */
	uint64_t count, bytes;        /* of those that have not left; their memory */
	/* of the queue's clock: until then some that a gateway before this one decided, and that this one decided, are
	 * not known any more */
	int64_t forgot_before_ms, forgot_here_ms;
};

/* @i is the transaction @name, and the newest one. 0 or CSSL_E_NO_MEMORY: nothing changed. */
int decided_enter(struct decided *t, struct item *i, struct content_bytes name);
/* Nobody finds it any more. It stays in the list by age. */
void decided_leave(struct decided *t, struct item *i);
/* The transaction of that name, and its reply in @out (@cap bytes; longer ones are cut), its length in @len. NULL:
 * none. */
const struct item *decided_find(
	const struct decided *t, const struct seal *s, struct content_bytes name, char *out, size_t cap, size_t *len);
/* Takes the oldest one out of the list, which is not empty. The caller gets its reference. */
struct item *decided_pop(struct decided *t);
/* All but the two times. */
void decided_clear(struct decided *t);
