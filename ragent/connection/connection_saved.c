/* connection_saved.c: decides which connections the next process may continue, and makes connections from those of
 * the process before. The memory of a connection outlives its process (ragent/keeper/table.h). So saving a
 * connection only means to write in its slot that it may continue as it is.
 *
 * It may while nothing is left over: every record is consumed, and the client has received every byte. For the next
 * process its owner is lost: it rests, and an agent adopts it in doubt with the next epoch (law 5). Before any
 * change that would make that wrong, the slot becomes void: bytes of the client, a frame of the owner, a change of
 * state, the next epoch. The kernel's counts show bytes that were read or written without that.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/error_text.h"
#include "net/fault.h"
#include "net/log.h"
#include "proto/error.h"
#include "ragent/connection/connection_handover.h"
#include "ragent/connection/connection_internal.h"
#include "ragent/connection/connection_saved.h"

/* --- in --- */

/* Once in a connection's life. 0, or CSSL_E_SYSTEM. */
static __attribute__((cold, noinline)) int name_socket(struct connection *c)
{
	socklen_t len = sizeof c->slot.cookie;

	c->slot.front = (uint16_t)c->front->index;
	return getsockopt(connection_fd(c), SOL_SOCKET, SO_COOKIE, &c->slot.cookie, &len) < 0 ? CSSL_E_SYSTEM : 0;
}

/* The first checks are those that fail most often. */
static int may_be_saved(const struct connection *c)
{
	if (c->queued != c->slot.bytes_written || (c->busy && c->busy->kept.data) || !c->home->table)
		return 0;
	return c->copies.current && c->slot.bytes_read != SLOT_BYTES_UNKNOWN && connection_leaves_nothing_over(c);
}

void connection_save(struct connection *c)
{
	if (!may_be_saved(c) || (c->slot.cookie == 0 && name_socket(c) < 0))
		return;
	table_slot_to(&c->slot, SLOT_VOID);
	c->slot.kept_len = 0;
	fault_at("slot.saving", NULL, NULL);
	table_slot_to(&c->slot, SLOT_SAVED);
	fault_at("slot.saved", NULL, NULL);
}

/* Nothing happened since the checkpoint but that these records came: none of them is answered. */
static int may_be_kept(const struct connection *c, const struct kept *k)
{
	const struct exposure *e = &c->busy->exposure;

	return c->state == CONNECTION_OWNED && c->tail == TAIL_NONE && c->queued == c->slot.bytes_written &&
	       c->position.response != POSITION_PARTLY_DELIVERED && e->losses == 0 && e->silent == 0 &&
	       k->first_record == c->position.checkpoint.client_records &&
	       position_replays_from(&c->position, k->first_record);
}

void connection_save_kept(struct connection *c)
{
	if (!c->busy || connection_is_saved(c))
		return;
	const struct kept *k = &c->busy->kept;
	const uint32_t len = k->end - k->start;
	if (len == 0 || k->cap > SLABS_BLOCK_MAX || !may_be_kept(c, k))
		return;
	c->slot.kept = k->data + k->start;
	c->slot.kept_len = (uint16_t)len;
	c->slot.kept_records = (uint16_t)(k->next_record - k->first_record);
	table_slot_to(&c->slot, SLOT_SAVED);
	fault_at("slot.kept", NULL, NULL);
}

/* --- out: every value of the process before is checked before it is used --- */

static int names_are_whole(const struct table *t, const struct agreed *a)
{
	size_t room = 2 * (NAME_MAX_LEN + 1u);
	const char *end = a->names;

	if ((uintptr_t)a % _Alignof(struct agreed) || !table_has(t, a, sizeof *a))
		return 0;
	while (room && !table_has(t, a->names, room))
		room--;
	for (unsigned i = 0; end && i < 2; i++) {
		end = memchr(end, '\0', room - (size_t)(end - a->names));
		end = end ? end + 1 : NULL;
	}
	return end != NULL;
}

static int copy_is_whole(const struct table *t, const struct sealed_blob *b)
{
	return (uintptr_t)b % _Alignof(struct sealed_blob) == 0 && table_has(t, b, sizeof *b) &&
	       b->len <= COPY_MAX_LEN && table_has(t, b, sealed_blob_len(b));
}

/* Are these values that a saved connection can have? Later code takes them for granted. */
static int is_at_rest_or_owned(const struct connection *c)
{
	return (c->state == CONNECTION_RESTING || (c->state == CONNECTION_OWNED && c->owner != NO_AGENT)) &&
	       c->position.stage == POSITION_LIVE && c->epoch != 0 && c->server_side == SERVER_OPEN &&
	       c->tail != TAIL_VIOLATION;
}

/* Checks the values that connection_pack() reads without a check. connection_unpack() checks the values that it
 * writes. */
static int is_readable(const struct connection_home *home, const struct connection *c)
{
	const struct table *t = home->table;
	const struct endpoints *e = &c->endpoints;

	return c->slot.front < home->shared->front_count && is_at_rest_or_owned(c) &&
	       copy_is_whole(t, c->copies.current) && (!c->agreed || names_are_whole(t, c->agreed)) &&
	       (e->unique_id_len == 0 || table_has(t, e->unique_id, e->unique_id_len)) &&
	       (c->slot.kept_len == 0 || table_has(t, c->slot.kept, c->slot.kept_len));
}

/* As it was, compact, with pointers of this process. 0, or CSSL_E_RANGE. */
static int take_image(struct connection_home *home, const struct connection *former, struct connection *out)
{
	*out = *former;
	if (!is_readable(home, out))
		return CSSL_E_RANGE;
	out->home = home;
	out->front = &home->shared->fronts[out->slot.front];
	out->next = NULL;
	out->prev = NULL;
	out->busy = NULL;
	out->current = (struct place){ NULL, 0 };
	out->copies.pending = NULL;
	if (out->endpoints.unique_id_len == 0)
		out->endpoints.unique_id = NULL;
	out->affinity_agent = out->handshaking_at = out->move_target = NO_AGENT;
	out->attempts = 0;
	out->tail = TAIL_NONE; /* the kernel tells of the client's end again */
	out->tail_told = TAIL_UNTOLD;
	return 0;
}

/* The records since the checkpoint. As far as is known, the owner got all of them. */
static void take_kept(struct connection *image, struct busy_part *busy)
{
	const struct table_slot *s = &image->slot;
	const uint64_t first = image->position.checkpoint.client_records;

	if (s->kept_len == 0)
		return;
	position_return(&image->position);
	busy->kept = (struct kept){ .data = (uint8_t *)s->kept,
		.cap = s->kept_len,
		.sent = s->kept_len,
		.end = s->kept_len,
		.first_record = first,
		.consumed_record = first,
		.next_record = first + s->kept_records };
	image->busy = busy;
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

/* @fd is owned from now on. On 0 the newest connection is this one, in memory of this life. */
static int unpack_image(
	struct connection_home *home, const struct handover_map *map, const struct connection *image, int fd)
{
	const size_t cap = connection_packed_len(image);
	uint8_t *packed = malloc(cap);

	if (!packed) {
		close(fd);
		return CSSL_E_NO_MEMORY;
	}
	struct wire_writer w = wire_writer(packed, cap);
	connection_pack(image, &w);
	int r = connection_unpack(home, map, fd, packed, (size_t)wire_writer_len(&w));
	free(packed);
	return r;
}

static int restore_image(struct connection_home *home, const struct handover_map *map, const struct table_slot *s,
	enum connection_state *was)
{
	struct connection image;
	struct busy_part busy = { 0 };
	int r = take_image(home, (const struct connection *)s, &image);

	if (r == 0 && connection_fault_at(&image, "slot.restoring") == FAULT_DROP)
		r = CSSL_E_RANGE;
	if (r < 0) {
		close(s->fd);
		return r;
	}
	*was = image.state;
	image.state = CONNECTION_RESTING;
	take_kept(&image, &busy);
	return unpack_image(home, map, &image, s->fd);
}

static void go_on(struct connection *c, enum connection_state was)
{
	if (was == CONNECTION_OWNED && c->busy->kept.data == NULL && !connection_survives_a_loss(c)) {
		counter_add(&c->home->counters.takeovers_ended, 1);
		connection_end(c, END_AGENT_LOST, END_RESET);
		return;
	}
	if (was == CONNECTION_OWNED)
		connection_owner_lost_with_process(c);
	if (c->state == CONNECTION_RESTING)
		connection_go_on(c);
}

/* If the socket is closed meanwhile, it resets: a FIN could pass for the end of an answer (law 8). */
static void end_by_reset(int fd, int on)
{
	const struct linger at_once = { .l_onoff = on };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

/* The slot shows that the connection is being restored. If that ends this process, the next one gives the connection
 * up. */
static void restore(struct connection_home *home, const struct handover_map *map, struct table_slot *s)
{
	struct fates *fates = &home->shared->notes->shared->fates;
	enum connection_state was = CONNECTION_RESTING;

	table_slot_to(s, SLOT_RESTORING);
	end_by_reset(s->fd, 1);
	int r = restore_image(home, map, s, &was);
	table_slot_to(s, SLOT_FREE);
	if (r < 0) {
		log_event(LOG_WARNING, NULL, "connection not restored", "cause=%s", error_text(r));
		atomic_fetch_add(&fates->reset, 1);
		return;
	}
	end_by_reset(connection_fd(home->connections), 0);
	struct connection *c = home->connections; /* the newest */
	go_on(c, was);
	atomic_fetch_add(c->state == CONNECTION_CLOSING ? &fates->reset : &fates->went_on, 1);
}

void connection_restore_all(struct connection_home *home)
{
	const unsigned worker = worker_index(home->worker);
	struct table_walk w = { 0 };
	struct handover_map map;
	struct table_slot *s;

	if (!home->table || same_numbers(home->shared, &map) < 0)
		return;
	while ((s = table_next(home->table, &w, worker)) != NULL) {
		if (table_slot_state(s) == SLOT_SAVED && s->fd >= 0)
			restore(home, &map, s);
		notes_beat_all(home->shared->notes);
	}
	free(map.fronts);
	table_forget_former(home->table, worker);
}

void connection_forget_saved(struct notes *n)
{
	for (unsigned worker = 0; worker + 1 < n->thread_count; worker++) {
		table_forget_former(n->table, worker);
		notes_beat_all(n);
	}
	atomic_fetch_add(&n->shared->fates.starts_without_restore, 1);
	log_event(LOG_ERROR, NULL, "nothing is restored",
		"cause=\"%u processes in a row died while they restored connections\" "
		"effect=\"the connections of before are reset; new clients are served\" "
		"remedy=\"see the cause of each 'ragent died': killed, look for a lack of memory; else, report it\"",
		n->died_restoring);
}

void connection_suspect_clients(struct notes *n)
{
	for (unsigned worker = 0; worker + 1 < n->thread_count; worker++) {
		const struct connection *c = notes_blamed(n, worker);
		atomic_store(&n->working[worker], NULL);
		if (table_has_slot(n->table, c))
			notes_suspect(n, &c->endpoints.client);
	}
}
