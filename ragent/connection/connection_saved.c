/* connection_saved.c: saves a connection in memory that outlives this process (ragent/keeper/table.h), and makes a
 * connection of it in the next process.
 *
 * A connection is saved only when nothing is left over: every record is consumed, and the client has received every
 * byte. For the next process its owner is lost: it rests, and an agent adopts it in doubt with the next epoch (law
 * 5). Before any change that would make the slot wrong, the slot becomes void: bytes of the client, a frame of the
 * owner, a change of state, the next epoch. The kernel's counts show bytes that were read or written without that.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/fault.h"
#include "proto/error.h"
#include "ragent/connection/connection_handover.h"
#include "ragent/connection/connection_internal.h"
#include "ragent/connection/connection_saved.h"

/* The members before the id have meaning in this process only. The members from position on change with each record. */
#define ID_BEGIN    offsetof(struct connection, id)
#define FROM_ID_LEN (sizeof(struct connection) - ID_BEGIN)
#define CHANGES     (offsetof(struct connection, position) - ID_BEGIN)

/* The contents of a slot. Both processes run the same program, so the layout of structs is the same. Pointers are
 * not valid. */
struct saved_connection {
	uint8_t from_id[FROM_ID_LEN]; /* a copy of struct connection, from its id to its end */
	uint32_t front;
	struct table_slot *kept; /* holds client records that came since; NULL while the connection is compact */
	uint32_t kept_len, kept_records;                    /* 0: none came */
	uint64_t first_kept;                                /* number of the first record that may come */
	uint32_t agreed_len, copy_len;                      /* lengths of the two in @side */
	_Alignas(max_align_t) uint8_t side[SAVED_SIDE_LEN]; /* agreed values, sealed copy, unique id */
};

size_t connection_saved_len(void)
{
	return sizeof(struct saved_connection);
}

/* --- in --- */

static size_t align(size_t len)
{
	return (len + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
}

static struct saved_connection *saved_in(struct table_slot *s)
{
	return (struct saved_connection *)s->saved;
}

static size_t agreed_len(const struct agreed *a)
{
	return a ? sizeof *a + strlen(agreed_server_name(a)) + strlen(agreed_alpn(a)) + 2 : 0;
}

static size_t copy_len(const struct sealed_blob *b)
{
	return b ? sizeof *b + b->len : 0;
}

/* 0, or CSSL_E_TOO_LONG. */
static __attribute__((cold, noinline)) int save_side(const struct connection *c, struct saved_connection *s)
{
	size_t agreed = agreed_len(c->agreed), copy = copy_len(c->copies.current);

	if (align(agreed) + align(copy) + c->endpoints.unique_id_len > sizeof s->side)
		return CSSL_E_TOO_LONG;
	memcpy(s->from_id, (const uint8_t *)c + ID_BEGIN, CHANGES);
	s->front = c->front->index;
	s->agreed_len = (uint32_t)agreed;
	s->copy_len = (uint32_t)copy;
	if (agreed)
		memcpy(s->side, c->agreed, agreed);
	if (copy)
		memcpy(s->side + align(agreed), c->copies.current, copy);
	if (c->endpoints.unique_id_len)
		memcpy(s->side + align(agreed) + align(copy), c->endpoints.unique_id, c->endpoints.unique_id_len);
	return 0;
}

/* For a length that it knows, the compiler makes a loop, which is slower. It does not know this one. */
static void save_position(const struct connection *c, struct saved_connection *s)
{
	memcpy(s->from_id + CHANGES, (const uint8_t *)c + ID_BEGIN + CHANGES, connection_len() - ID_BEGIN - CHANGES);
}

/* Runs once in a connection's life. */
static __attribute__((cold, noinline)) struct table_slot *take_slot(struct connection *c)
{
	struct table_slot *s = slot_pool_take(&c->home->slots);
	socklen_t len = sizeof s->cookie;

	if (!s)
		return NULL;
	if (getsockopt(connection_fd(c), SOL_SOCKET, SO_COOKIE, &s->cookie, &len) < 0) {
		slot_pool_give(&c->home->slots, s);
		return NULL;
	}
	saved_in(s)->kept = NULL;
	c->slot_side = SIDE_STALE;
	return s;
}

static void drop_kept(struct connection *c, struct saved_connection *s)
{
	slot_pool_give(&c->home->kept_slots, s->kept);
	s->kept = NULL;
}

/* The first checks are those that fail most often. */
static int may_be_saved(const struct connection *c)
{
	if (c->queued != c->drained || (c->busy && c->busy->kept.data) || !c->home->slots.table)
		return 0;
	return c->copies.current && c->bytes_read != BYTES_UNKNOWN && connection_leaves_nothing_over(c);
}

void connection_save(struct connection *c)
{
	if (!may_be_saved(c))
		return;
	if (!c->slot && (c->slot = take_slot(c)) == NULL)
		return;
	table_slot_void(c->slot);
	struct saved_connection *s = saved_in(c->slot);
	if (c->slot_side == SIDE_STALE && save_side(c, s) < 0)
		return;
	c->slot_side = SIDE_SAVED;
	if (s->kept && !c->busy)
		drop_kept(c, s);
	s->kept_len = 0;
	s->first_kept = c->position.client_records;
	save_position(c, s);
	fault_at("slot.saving", NULL, NULL);
	c->slot->bytes_read = c->bytes_read;
	c->slot->bytes_written = c->drained;
	table_slot_saved(c->slot);
	fault_at("slot.saved", NULL, NULL);
}

/* The slot is true but for these records, and no others came. */
static int may_be_kept(const struct connection *c, const struct kept *k)
{
	const struct exposure *e = &c->busy->exposure;

	return c->state == CONNECTION_OWNED && c->tail == TAIL_NONE && c->queued == c->slot->bytes_written &&
	       e->losses == 0 && e->silent == 0 && k->first_record == saved_in(c->slot)->first_kept &&
	       k->end - k->start <= SAVED_KEPT_LEN;
}

void connection_save_kept(struct connection *c)
{
	const struct kept *k = &c->busy->kept;
	struct saved_connection *s = saved_in(c->slot);

	if (!may_be_kept(c, k))
		return;
	if (!s->kept && (s->kept = slot_pool_take(&c->home->kept_slots)) == NULL)
		return;
	memcpy(s->kept->saved, k->data + k->start, k->end - k->start);
	s->kept_len = k->end - k->start;
	s->kept_records = (uint32_t)(k->next_record - k->first_record);
	c->slot->bytes_read = c->bytes_read;
	table_slot_saved(c->slot);
	fault_at("slot.kept", NULL, NULL);
}

void connection_forget_slot(struct connection *c)
{
	if (!c->slot)
		return;
	if (saved_in(c->slot)->kept)
		drop_kept(c, saved_in(c->slot));
	slot_pool_give(&c->home->slots, c->slot);
	c->slot = NULL;
}

/* --- out --- */

/* The connection as it was, compact, with pointers of this process. */
static void take_image(struct connection_home *home, struct saved_connection *s, struct connection *out)
{
	uint8_t *copy = s->side + align(s->agreed_len);

	memset(out, 0, ID_BEGIN);
	memcpy((uint8_t *)out + ID_BEGIN, s->from_id, FROM_ID_LEN);
	out->home = home;
	out->front = &home->shared->fronts[s->front];
	out->busy = NULL;
	out->current = (struct place){ NULL, 0 };
	out->agreed = s->agreed_len ? (struct agreed *)s->side : NULL;
	out->copies = (struct copies){ .current = (struct sealed_blob *)copy };
	out->endpoints.unique_id = out->endpoints.unique_id_len ? copy + align(s->copy_len) : NULL;
	out->affinity_agent = out->handshaking_at = out->move_target = NO_AGENT;
	out->attempts = 0;
}

/* Both processes have the same cluster file, so a number means the same in both. */
static int same_numbers(const struct ragent_shared *shared, struct handover_map *out)
{
	*out = (struct handover_map){ .agent_count = agents_count(shared->agents),
		.front_count = (unsigned)shared->front_count,
		.fronts = calloc(shared->front_count + 1, sizeof *out->fronts) };
	for (unsigned i = 0; i < out->agent_count; i++)
		out->agents[i] = (int)i;
	for (unsigned i = 0; out->fronts && i < out->front_count; i++)
		out->fronts[i] = &shared->fronts[i];
	return out->fronts ? 0 : CSSL_E_NO_MEMORY;
}

static int unpack_image(struct connection_home *home, const struct connection *image, int fd)
{
	const size_t cap = connection_packed_len(image);
	uint8_t *packed = malloc(cap);
	struct handover_map map;

	if (!packed || same_numbers(home->shared, &map) < 0) {
		free(packed);
		close(fd);
		return CSSL_E_NO_MEMORY;
	}
	struct wire_writer w = wire_writer(packed, cap);
	connection_pack(image, &w);
	int r = connection_unpack(home, &map, fd, packed, (size_t)wire_writer_len(&w));
	free(map.fronts);
	free(packed);
	return r;
}

/* As far as is known, the owner got all of these records. They are not saved again: this process uses their memory. */
static void take_kept(struct table_slot *slot, struct connection *image, struct busy_part *busy)
{
	struct saved_connection *s = saved_in(slot);

	if (s->kept_len) {
		table_slot_void(slot);
		busy->kept = (struct kept){ .data = s->kept->saved,
			.cap = s->kept_len,
			.sent = s->kept_len,
			.end = s->kept_len,
			.first_record = s->first_kept,
			.consumed_record = s->first_kept,
			.next_record = s->first_kept + s->kept_records };
		image->busy = busy;
		image->client_bytes += s->kept_len;
	}
	s->kept = NULL;
}

static void reset(int fd)
{
	const struct linger at_once = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(fd);
}

static void restore(struct connection_home *home, struct table_slot *s)
{
	const int fd = s->fd;
	struct connection image;
	struct busy_part busy = { 0 };

	s->fd = -1;
	take_image(home, saved_in(s), &image);
	take_kept(s, &image, &busy);
	const enum connection_state was = image.state;
	if (was == CONNECTION_OWNED && !image.busy && !connection_survives_a_loss(&image)) {
		counter_add(&home->counters.takeovers_ended, 1);
		slot_pool_give(&home->slots, s);
		reset(fd);
		return;
	}
	image.state = CONNECTION_RESTING;
	if (unpack_image(home, &image, fd) < 0) {
		slot_pool_give(&home->slots, s);
		return;
	}
	struct connection *c = home->connections; /* the newest one */
	c->slot = s;
	c->slot_side = SIDE_SAVED;
	if (was == CONNECTION_OWNED)
		connection_owner_lost_with_process(c);
	if (c->state == CONNECTION_RESTING)
		connection_go_on(c);
}

void connection_restore_all(struct connection_home *home)
{
	struct table *t = home->slots.table;
	struct table_slot *s;

	for (uint32_t i = 0; t && (s = table_slot(t, i)) != NULL; i++)
		if (s->worker == home->slots.worker && atomic_load(&s->state) == SLOT_SAVED && s->fd >= 0)
			restore(home, s);
}
