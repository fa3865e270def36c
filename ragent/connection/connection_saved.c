/* connection_saved.c: writes down what the next process needs to continue a connection. Its memory outlives the process
 * (ragent/keeper/slot_table.h).
 *
 * A compact connection is saved as it is: nothing of it changes. A busy one has a trail (connection_saved.h): after
 * each frame of its owner an image of it is written there, so the valid image is at most one frame old. The next
 * process learns the rest elsewhere: the owner holds the frames that no image has, the kernel counts the bytes that
 * went to the client, and the client's bytes are in the log, or in the worker's read buffer. Of a connection without an
 * agent, nothing but bytes of its client may have come since.
 *
 * Another state or another agent follows in one step, too: until the next image is valid, the slot says how it was
 * before the event. No agent has heard of the change by then, so a death amid the event is as one before it. An image
 * with the next epoch or order is valid before its frame is sent. The slot is void while the connection ends, and when
 * a compact one changes.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/points/fault.h"
#include "proto/error.h"
#include "ragent/connection/connection_saved.h"

#define LOG_PAUSE_MS 1000u

/* Once in a connection's life. 0, or CSSL_E_SYSTEM. */
static __attribute__((cold, noinline)) int saved_name_socket(struct connection *c)
{
	socklen_t len = sizeof c->slot.cookie;

	c->slot.front = (uint16_t)c->front->index;
	return getsockopt(connection_fd(c), SOL_SOCKET, SO_COOKIE, &c->slot.cookie, &len) < 0 ? CSSL_E_SYSTEM : 0;
}

/* No agent holds any bytes that the client lacks. */
static bool saved_has_all_bytes(const struct connection *c)
{
	return c->now.queued == c->slot.bytes_written || (c->busy && c->busy->owed_end == c->now.queued);
}

/* No agent has it, and none has to hear of anything. */
static bool saved_has_nothing_to_tell(const struct connection *c)
{
	return c->now.tail == TAIL_NONE && saved_has_all_bytes(c);
}

/* Connections in other states end at a death. */
static bool saved_may_go_on(const struct connection *c)
{
	switch ((enum connection_state)c->now.state) {
	case CONNECTION_PROXY:
	case CONNECTION_HELLO:
	case CONNECTION_WAITING: return saved_has_nothing_to_tell(c);
	case CONNECTION_PREAMBLE: /* as long as it has no agent, nobody has said anything */
		return c->now.current.link ? c->now.tail != TAIL_VIOLATION : saved_has_nothing_to_tell(c);
	case CONNECTION_RELAYED: return c->now.current.link && c->now.tail != TAIL_VIOLATION;
	case CONNECTION_HANDSHAKING:
	case CONNECTION_OWNED:
	case CONNECTION_MOVING:
	case CONNECTION_ADOPTING:
	case CONNECTION_FINISHING:
	case CONNECTION_REATTACHING: return c->now.tail != TAIL_VIOLATION;
	case CONNECTION_RESTING: /* or its owner was lost, and the next one is to be found */
		return saved_has_nothing_to_tell(c) && c->now.server_side == SERVER_OPEN && c->now.copies.current;
	/* It is over. The kernel may lack the FIN, or the client may still send: a closed socket would answer that by
	 * a reset, and the client would lose what it has not read. */
	case CONNECTION_LINGERING: return true;
	case CONNECTION_CLOSING: return false;
	}
	return false;
}

static bool may_be_saved(const struct connection *c)
{
	return c->home->table && c->slot.bytes_read != SLOT_BYTES_UNKNOWN && saved_may_go_on(c) &&
	       !(c->busy && c->busy->log_again_ms > connection_now_ms(c));
}

/* --- the trail --- */

static struct trail *trail_take(struct connection *c)
{
	struct trail *t = slabs_take(&c->home->trails);

	if (t && !slot_table_has(c->home->table, t, sizeof *t)) {
		slabs_give(&c->home->trails, t);
		return NULL;
	}
	if (t)
		*t = (struct trail){ 0 };
	return t;
}

void connection_forget_trail(struct connection *c)
{
	struct trail *t = trail_of(c);

	if (!t)
		return;
	c->slot.trail = NULL;
	byte_log_drop(&t->log, &c->home->blocks);
	byte_log_drop(&t->owed, &c->home->blocks);
	slabs_give(&c->home->trails, t);
}

static int trail_log_bytes(struct connection *c, const uint8_t *data, size_t len)
{
	return byte_log_append(&trail_of(c)->log, &c->home->blocks, c->home->table, data, len);
}

/* Bytes of the client that were not used yet. */
struct unused {
	const uint8_t *data;
	size_t len;
};

/* The slot says nothing yet: the log begins with all that is kept, and with the bytes that wait behind it. */
static int trail_begin_log(struct connection *c, const struct unused *rest)
{
	const struct kept *k = &c->busy->kept;
	const size_t kept = k->end - k->start;

	byte_log_begin(&trail_of(c)->log, &c->home->blocks, c->slot.bytes_read - kept);
	int r = kept ? trail_log_bytes(c, k->data + k->start, kept) : 0;
	return r == 0 && rest->len ? trail_log_bytes(c, rest->data, rest->len) : r;
}

/* --- what it is owed --- */

/* Bytes for the client that no agent holds any more, because the connection went on to another agent or has ended, and
 * that the client's kernel has not taken. Only this process has them, so the next one finds a copy. They are few:
 * records of the handshake that wait a moment for the first answer, or a window for a client that reads slowly. */

/* The first byte to copy: @from, if it is not there already. The image before may need those that are there. */
static uint64_t owed_goes_on_at(struct connection *c, struct trail *t, uint64_t from)
{
	if (t->owed.first && byte_log_end(&t->owed) >= from)
		return byte_log_end(&t->owed);
	byte_log_begin(&t->owed, &c->home->blocks, from);
	return from;
}

/* The kernel may have taken more of them than the stream has told: these are not in its output any more. */
static int owed_copy(struct connection *c, struct trail *t)
{
	const struct stream *client = &c->busy->client;
	const size_t len = stream_unwritten_len(client);
	const uint64_t unwritten = c->now.queued - len, end = c->busy->owed_end,
		       from = owed_goes_on_at(c, t, unwritten);
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

static int save_owed(struct connection *c)
{
	struct trail *t = trail_of(c);

	if (!connection_owes(c)) {
		byte_log_drop(&t->owed, &c->home->blocks);
		return 0;
	}
	const bool has_copy = t->owed.first && byte_log_end(&t->owed) == c->busy->owed_end;
	return has_copy ? 0 : owed_copy(c, t);
}

/* --- the image --- */

static void trail_write_image(struct connection *c, struct trail_image *to)
{
	const struct kept *k = &c->busy->kept;

	c->now.account.frames_saved = c->now.account.frames;
	to->now = c->now;
	to->exposure = c->busy->exposure;
	to->preamble = c->busy->preamble ? c->busy->preamble->now : (struct preamble_now){ 0 };
	to->resumes = c->busy->resumes;
	to->move_answer = c->busy->move_answer;
	to->orders = c->busy->orders;
	to->note = c->busy->note.current;
	to->first_byte = c->slot.bytes_read - (k->end - k->start);
	to->first_record = k->first_record;
}

static void trail_make_valid(struct trail *t, uint32_t image)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&t->now, image, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

static int trail_save(struct connection *c, const struct unused *rest)
{
	if (!c->slot.trail && (c->slot.trail = trail_take(c)) == NULL)
		return CSSL_E_NO_MEMORY;
	struct trail *t = trail_of(c);
	if (!table_slot_has_trail(table_slot_state(&c->slot)) && trail_begin_log(c, rest) < 0)
		return CSSL_E_NO_MEMORY;
	if (save_owed(c) < 0)
		return CSSL_E_NO_MEMORY;
	const uint32_t next = 1 - (atomic_load_explicit(&t->now, memory_order_relaxed) & 1);
	trail_write_image(c, &t->at[next]);
	fault_at("slot.saving", NULL, NULL);
	trail_make_valid(t, next);
	table_slot_to(&c->slot, SLOT_FOLLOWED);
	byte_log_forget(&t->log, &c->home->blocks, t->at[next].first_byte);
	return 0;
}

/* The next attempt copies all kept bytes, so it is not made with each frame. */
void connection_give_up_log(struct connection *c)
{
	const uint64_t now_ms = connection_now_ms(c);

	connection_void(c);
	connection_forget_trail(c);
	if (c->busy->log_again_ms <= now_ms)
		c->busy->log_again_ms = now_ms + LOG_PAUSE_MS;
}

/* --- in --- */

static void saved_write(struct connection *c, const struct unused *rest)
{
	if (!may_be_saved(c) || (c->slot.cookie == 0 && saved_name_socket(c) < 0)) {
		if (table_slot_state(&c->slot) == SLOT_CHANGING)
			connection_void(c);
		return;
	}
	if (c->busy) {
		if (trail_save(c, rest) < 0)
			connection_give_up_log(c);
	} else {
		c->now.account.frames_saved = c->now.account.frames;
		table_slot_to(&c->slot, SLOT_SAVED);
		connection_forget_trail(c);
	}
	sealed_blob_drop(&c->now.copies.former, &c->home->blocks);
	if (c->busy)
		sealed_blob_drop(&c->busy->note.former, &c->home->blocks);
	fault_at("slot.saved", NULL, NULL);
}

void connection_save(struct connection *c)
{
	struct unused rest = { 0 };

	if (c->busy)
		rest = (struct unused){ stream_kept_data(&c->busy->client), stream_kept(&c->busy->client) };
	saved_write(c, &rest);
}

/* If its slot is void, it stays so until the end of the event: only then it is known which bytes wait. */
void connection_save_before_telling(struct connection *c)
{
	if (table_slot_state(&c->slot) == SLOT_CHANGING)
		connection_save(c);
	fault_at("slot.telling", NULL, NULL);
}

void connection_save_amid_input(struct connection *c, const uint8_t *rest, size_t len)
{
	if (!connection_is_saved(c))
		saved_write(c, &(struct unused){ rest, len });
}

void connection_log_input(struct connection *c, const uint8_t *data, size_t len)
{
	if (!table_slot_has_trail(table_slot_state(&c->slot)) || c->now.state == CONNECTION_LINGERING)
		return;
	const size_t had = (size_t)(byte_log_end(&trail_of(c)->log) - c->slot.bytes_read);
	if (len > had && trail_log_bytes(c, data + had, len - had) < 0)
		connection_give_up_log(c);
	fault_at("slot.kept", NULL, NULL);
}
