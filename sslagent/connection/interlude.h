/* interlude.h: what an owner does before it goes on as an owner: RECOVERING, PASSING or SETTLING. Each of these states
 * has a struct that embeds this one, so that nobody below them has to know them.
 */
#pragma once

#include <stdbool.h>

#include "sslagent/connection/kept_bytes.h"

struct connection;
struct interlude;

struct interlude_ops {
	/* Free it. Its bytes are wiped already. */
	void (*drop)(struct interlude *i);
	/* Records were opened, or an answer went on: may it end now? May change the state of the connection, or end it.
	 * NULL: nothing depends on that. */
	void (*look)(struct connection *c);
	/* RECOVERING: are more of the client's records to be opened? Plaintext of one; 0 or negative. */
	bool (*hears)(const struct connection *c);
	int (*hear)(struct connection *c, const uint8_t *data, size_t len);
};

struct interlude {
	const struct interlude_ops *ops;
	/* RECOVERING: of the records that the lost owner had got. SETTLING: of the last record, from the next request
	 * on; from_client.c fills it */
	struct kept_bytes *kept;
	size_t record_len; /* SETTLING: of that record */
};
