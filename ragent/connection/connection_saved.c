/* connection_saved.c: writes down what the next process needs to continue a connection. Its memory outlives the process
 * (ragent/keeper/table.h).
 *
 * A compact connection is saved as it is: nothing of it changes. A busy one has a trail (trail.h): after each frame of
 * its owner an image of it is written there, so the valid image is at most one frame old. The next process learns the
 * rest elsewhere: the owner holds the frames that no image has, the kernel counts the bytes that went to the client,
 * and the client's bytes are in the log, or in the worker's read buffer. Of a connection that rests, nothing but bytes
 * of its client may have come since. The slot becomes void before anything else happens to the connection: another
 * state, the next epoch.
 */
#include <string.h>
#include <sys/socket.h>

#include "net/fault.h"
#include "proto/error.h"
#include "ragent/connection/connection_handover.h"
#include "ragent/connection/connection_saved.h"
#include "ragent/connection/trail.h"

size_t connection_trail_len(void)
{
	return sizeof(struct trail);
}

/* Once in a connection's life. 0, or CSSL_E_SYSTEM. */
static __attribute__((cold, noinline)) int name_socket(struct connection *c)
{
	socklen_t len = sizeof c->slot.cookie;

	c->slot.front = (uint16_t)c->front->index;
	return getsockopt(connection_fd(c), SOL_SOCKET, SO_COOKIE, &c->slot.cookie, &len) < 0 ? CSSL_E_SYSTEM : 0;
}

static int owner_may_go_on(const struct connection *c)
{
	if (c->tail == TAIL_VIOLATION || (c->server_side != SERVER_OPEN && c->server_side != SERVER_SAID_LAST))
		return 0;
	return !c->busy || c->busy->move_answer == MOVE_ANSWER_NOT_DUE;
}

/* The first checks are those that fail most often. */
static int may_be_saved(const struct connection *c)
{
	if (!c->home->table || c->slot.bytes_read == SLOT_BYTES_UNKNOWN)
		return 0;
	if (c->state == CONNECTION_OWNED || c->state == CONNECTION_REATTACHING)
		return owner_may_go_on(c);
	return c->state == CONNECTION_RESTING && c->queued == c->slot.bytes_written && c->copies.current &&
	       connection_leaves_nothing_over(c);
}

/* --- the trail --- */

static struct trail *take_trail(struct connection *c)
{
	struct trail *t = slabs_take(&c->home->trails);

	if (t && !table_has(c->home->table, t, sizeof *t)) {
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
	client_log_drop(&t->log, &c->home->blocks);
	slabs_give(&c->home->trails, t);
}

static int log_bytes(struct connection *c, const uint8_t *data, size_t len)
{
	return client_log_append(&trail_of(c)->log, &c->home->blocks, c->home->table, data, len);
}

/* The slot says nothing yet: the log begins with all that is kept, and with the bytes that wait behind it. */
static int begin_log(struct connection *c)
{
	const struct kept *k = &c->busy->kept;
	const size_t kept = k->end - k->start;

	client_log_drop(&trail_of(c)->log, &c->home->blocks);
	client_log_begin(&trail_of(c)->log, c->slot.bytes_read - kept);
	int r = kept ? log_bytes(c, k->data + k->start, kept) : 0;
	if (r == 0 && stream_kept(&c->busy->client))
		r = log_bytes(c, stream_kept_data(&c->busy->client), stream_kept(&c->busy->client));
	return r;
}

static void write_image(struct connection *c, struct trail_image *to)
{
	const struct kept *k = &c->busy->kept;

	c->account.frames_saved = c->account.frames;
	memcpy(to->members, (const uint8_t *)c + TRAIL_BEGIN, sizeof to->members);
	to->exposure = c->busy->exposure;
	to->first_byte = c->slot.bytes_read - (k->end - k->start);
	to->first_record = k->first_record;
}

static void make_valid(struct trail *t, uint32_t image)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&t->now, image, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

static int save_trail(struct connection *c)
{
	if (!c->slot.trail && (c->slot.trail = take_trail(c)) == NULL)
		return CSSL_E_NO_MEMORY;
	struct trail *t = trail_of(c);
	if (table_slot_state(&c->slot) != SLOT_FOLLOWED && begin_log(c) < 0)
		return CSSL_E_NO_MEMORY;
	const uint32_t next = 1 - (atomic_load_explicit(&t->now, memory_order_relaxed) & 1);
	write_image(c, &t->at[next]);
	fault_at("slot.saving", NULL, NULL);
	make_valid(t, next);
	table_slot_to(&c->slot, SLOT_FOLLOWED);
	client_log_forget(&t->log, &c->home->blocks, t->at[next].first_byte);
	return 0;
}

/* --- in --- */

void connection_save(struct connection *c)
{
	if (!may_be_saved(c) || (c->slot.cookie == 0 && name_socket(c) < 0))
		return;
	if (c->busy) {
		if (save_trail(c) < 0)
			connection_touch(c);
	} else {
		c->account.frames_saved = c->account.frames;
		table_slot_to(&c->slot, SLOT_SAVED);
		connection_forget_trail(c);
	}
	copies_forget_former(&c->copies, &c->home->belongings);
	fault_at("slot.saved", NULL, NULL);
}

void connection_log_input(struct connection *c, const uint8_t *data, size_t len)
{
	if (table_slot_state(&c->slot) != SLOT_FOLLOWED)
		return;
	const size_t had = (size_t)(client_log_end(&trail_of(c)->log) - c->slot.bytes_read);
	if (len > had && log_bytes(c, data + had, len - had) < 0)
		connection_touch(c);
	fault_at("slot.kept", NULL, NULL);
}
