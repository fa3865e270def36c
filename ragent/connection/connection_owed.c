/* connection_owed.c: bytes for the client that no agent holds any more, because the connection went on to another agent
 * or has ended, and that the client's kernel has not taken. Only this process has them, so the next one finds a copy.
 * They are few: records of the handshake that wait a moment for the first answer, or a window for a client that reads
 * slowly.
 */
#include <stdlib.h>

#include "proto/error.h"
#include "ragent/connection/connection_internal.h"
#include "ragent/connection/trail.h"

void connection_owe_queued(struct connection *c)
{
	if (c->busy && c->queued != c->slot.bytes_written)
		c->busy->owed_end = c->queued;
}

int connection_owes(const struct connection *c)
{
	return c->busy && c->busy->owed_end > c->slot.bytes_written;
}

static int has_copy(const struct trail *t, uint64_t end)
{
	return t->owed.first && byte_log_end(&t->owed) == end;
}

/* The first byte to copy: @from, if it is not there already. The image before may need those that are there. */
static uint64_t goes_on_at(struct connection *c, struct trail *t, uint64_t from)
{
	if (t->owed.first && byte_log_end(&t->owed) >= from)
		return byte_log_end(&t->owed);
	byte_log_drop(&t->owed, &c->home->blocks);
	byte_log_begin(&t->owed, from);
	return from;
}

/* The kernel may have taken more of them than the stream has told: these are not in its output any more. */
static int copy(struct connection *c, struct trail *t)
{
	const struct stream *client = &c->busy->client;
	const size_t len = stream_unwritten_len(client);
	const uint64_t unwritten = c->queued - len, end = c->busy->owed_end, from = goes_on_at(c, t, unwritten);
	uint8_t *bytes = malloc(len + 1);

	if (!bytes)
		return CSSL_E_NO_MEMORY;
	stream_unwritten_copy(client, bytes);
	int r = from < end ? byte_log_append(&t->owed, &c->home->blocks, c->home->table, bytes + (from - unwritten),
				     (size_t)(end - from))
			   : 0;
	free(bytes);
	return r;
}

int connection_save_owed(struct connection *c)
{
	struct trail *t = trail_of(c);

	if (!connection_owes(c)) {
		byte_log_drop(&t->owed, &c->home->blocks);
		return 0;
	}
	return has_copy(t, c->busy->owed_end) ? 0 : copy(c, t);
}
