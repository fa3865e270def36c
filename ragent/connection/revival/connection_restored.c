/* connection_restored.c: makes a connection from one that the process before left (connection_saved.c). A connection
 * that had an agent waits for it in state REATTACHING; another one is in the state of before. Every value of the
 * process before is checked before it is used, because it can have been attacked.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/points/mutant.h"
#include "net/report/error_text.h"
#include "net/socket/tcp_counts.h"
#include "proto/error.h"
#include "ragent/connection/connection_client.h"
#include "ragent/connection/connection_owner.h"
#include "ragent/connection/revival/connection_restoring.h"
#include "ragent/connection/revival/revival.h"

/* --- checks --- */

static bool names_are_whole(const struct slot_table *t, const struct agreed *a)
{
	size_t room = 2 * (NAME_MAX_LEN + 1u);

	if ((uintptr_t)a % _Alignof(struct agreed) || !slot_table_has(t, a, sizeof *a))
		return false;
	const char *end = a->names;
	while (room && !slot_table_has(t, a->names, room))
		room--;
	for (unsigned i = 0; end && i < 2; i++) {
		end = memchr(end, '\0', room - (size_t)(end - a->names));
		end = end ? end + 1 : NULL;
	}
	return end != NULL;
}

static bool blob_is_whole(const struct slot_table *t, const struct sealed_blob *b)
{
	return (uintptr_t)b % _Alignof(struct sealed_blob) == 0 && slot_table_has(t, b, sizeof *b) && b->len > 0 &&
	       b->len <= COPY_MAX_LEN && slot_table_has(t, b, sealed_blob_len(b));
}

/* The parts of a connection in each state that can be saved. REATTACHING ones are not here: the state in which they go
 * on counts. */
enum has { HAS_NO_STATE, HAS_BEGUN, HAS_CLEAR, HAS_HANDSHAKE, HAS_ADOPTER, HAS_OWNER, HAS_COPY, HAS_ENDED };

static enum has restored_has(enum connection_state state)
{
	static const enum has rows[CONNECTION_STATE_COUNT] = {
		[CONNECTION_PROXY] = HAS_BEGUN,
		[CONNECTION_HELLO] = HAS_BEGUN,
		[CONNECTION_WAITING] = HAS_BEGUN,
		[CONNECTION_PREAMBLE] = HAS_CLEAR,
		[CONNECTION_RELAYED] = HAS_CLEAR,
		[CONNECTION_HANDSHAKING] = HAS_HANDSHAKE,
		[CONNECTION_ADOPTING] = HAS_ADOPTER,
		[CONNECTION_OWNED] = HAS_OWNER,
		[CONNECTION_MOVING] = HAS_OWNER,
		[CONNECTION_FINISHING] = HAS_OWNER,
		[CONNECTION_RESTING] = HAS_COPY,
		[CONNECTION_LINGERING] = HAS_ENDED,
	};

	return state < CONNECTION_STATE_COUNT ? rows[state] : HAS_NO_STATE;
}

static bool restored_has_agent(const struct connection *c)
{
	if (restored_has(c->now.state) == HAS_CLEAR && c->now.account.stream.agent == NO_AGENT)
		return false; /* it waits for one (restored_take_image()) */
	return restored_has(c->now.state) > HAS_BEGUN && restored_has(c->now.state) < HAS_COPY;
}

static bool waits_for_banner(const struct connection *c)
{
	return c->now.state == CONNECTION_PREAMBLE && c->busy->preamble->now.said == PREAMBLE_NOTHING &&
	       c->now.queued == 0;
}

static bool is_before_its_keys(const struct connection *c)
{
	return c->now.position.stage == POSITION_HANDSHAKE && !c->now.copies.current && !c->now.agreed;
}

static bool restored_is_live(const struct connection *c)
{
	return c->now.position.stage == POSITION_LIVE && c->now.epoch != 0;
}

/* Are these values that a saved connection can have? Later code takes them for granted. */
static bool restored_fits_its_state(const struct connection *c)
{
	switch (restored_has(c->now.state)) {
	case HAS_BEGUN: return is_before_its_keys(c) && c->now.position.server_records == 0;
	case HAS_CLEAR: /* nobody owns anything in clear, so there is no epoch and no record */
		return is_before_its_keys(c) && c->now.position.server_records == 0 && c->now.epoch == 0 &&
		       connection_is_in_clear(c) && (restored_has_agent(c) || waits_for_banner(c));
	case HAS_HANDSHAKE: return is_before_its_keys(c) && c->now.epoch != 0;
	case HAS_ADOPTER: return restored_is_live(c) && c->now.copies.current;
	case HAS_OWNER: return restored_is_live(c) && c->now.owner != NO_AGENT;
	case HAS_COPY: return restored_is_live(c) && c->now.copies.current && c->now.server_side == SERVER_OPEN;
	case HAS_ENDED: return !c->now.copies.current;
	case HAS_NO_STATE: return false;
	}
	return false;
}

/* The agent that is asked to go on with it. */
static bool names_its_stream(const struct connection_home *home, const struct connection *c)
{
	const int16_t agent = c->now.account.stream.agent;

	return !restored_has_agent(c) || (agent >= 0 && (unsigned)agent < agents_count(home->shared->agents));
}

/* Checks the values that connection_pack() reads without a check. connection_unpack() checks the values that it
 * writes. */
static bool restored_is_readable(const struct connection_home *home, const struct connection *c)
{
	const struct slot_table *t = home->table;
	const struct endpoints *e = &c->endpoints;

	/* of one that has ended nothing more is read */
	const bool tail_fits = c->now.tail != TAIL_VIOLATION || restored_has(c->now.state) == HAS_ENDED;

	return c->slot.front < home->shared->front_count && tail_fits && restored_fits_its_state(c) &&
	       names_its_stream(home, c) && (!c->now.copies.current || blob_is_whole(t, c->now.copies.current)) &&
	       (!c->now.agreed || names_are_whole(t, c->now.agreed)) &&
	       (e->unique_id_len == 0 || slot_table_has(t, e->unique_id, e->unique_id_len));
}

/* --- the connection --- */

static int restored_find_image(struct restored *r)
{
	const struct trail *t = r->slot->trail;

	if (!table_slot_has_trail(r->was))
		return 0;
	if ((uintptr_t)t % _Alignof(struct trail) || !slot_table_has(r->home->table, t, sizeof *t))
		return CSSL_E_RANGE;
	r->trail = t;
	r->image = &t->at[atomic_load(&t->now) & 1];
	return 0;
}

/* An agent that was told to freeze the connection may do so later, or never: it is its owner until then. */
static void restored_wait_for_agent(struct restored *r)
{
	struct connection *c = &r->c;

	r->busy.resumes = c->now.state == CONNECTION_MOVING ? CONNECTION_OWNED : c->now.state;
	if (c->now.state == CONNECTION_MOVING)
		r->busy.move_answer = MOVE_ANSWER_OVERDUE;
	c->now.state = CONNECTION_REATTACHING;
}

static void restored_take_preamble(struct restored *r, const struct preamble_now *p)
{
	const bool is_clear = restored_has(r->c.now.state) == HAS_CLEAR;

	r->preamble = (struct preamble){ .now.hello_ms = is_clear ? 0 : p->hello_ms };
	r->busy.preamble = is_clear || p->hello_ms ? &r->preamble : NULL;
	if (!is_clear)
		return;
	r->preamble.now.wait_began_ms = p->wait_began_ms;
	r->preamble.now.said = p->said <= PREAMBLE_PART_OF_REPLY ? p->said : PREAMBLE_PART_OF_REPLY;
	r->preamble.now.finishing = p->finishing == PREAMBLE_FINISHING ? PREAMBLE_FINISHING : PREAMBLE_GOES_ON;
	r->preamble.now.told = p->told < END_REASON_COUNT ? p->told : END_DONE;
	r->busy.kept.unit = KEPT_BYTES;
}

static void restored_take_busy(struct restored *r)
{
	const struct trail_image *image = r->image;

	r->busy.exposure = image->exposure;
	r->busy.orders = image->orders;
	r->busy.move_answer = image->move_answer == MOVE_ANSWER_OVERDUE ? MOVE_ANSWER_OVERDUE : MOVE_ANSWER_NOT_DUE;
	if (blob_is_whole(r->home->table, image->note)) /* else no other agent can go on with the answer */
		r->busy.note.current = image->note;
	if (r->c.now.state == CONNECTION_REATTACHING)
		r->c.now.state = image->resumes;
	restored_take_preamble(r, &image->preamble);
}

/* As it was, with pointers of this process. 0, or CSSL_E_RANGE. */
static int restored_take_image(struct restored *r)
{
	struct connection *out = &r->c;

	memcpy(out, r->slot, sizeof *out);
	if (r->image)
		out->now = r->image->now;
	if (out->now.state == CONNECTION_PROXY) /* its header is read again */
		out->endpoints.unique_id_len = 0;
	const bool had_agent = out->now.current.link || out->now.state == CONNECTION_REATTACHING;
	out->busy = &r->busy;
	if (r->image)
		restored_take_busy(r);
	if (restored_has(out->now.state) == HAS_CLEAR && !had_agent)
		out->now.account.stream.agent = NO_AGENT;
	if (mutant("record-not-restored") && out->now.position.write_sequence)
		out->now.position.write_sequence--;
	if (!restored_is_readable(r->home, out))
		return CSSL_E_RANGE;
	out->home = r->home;
	out->front = &r->home->shared->fronts[out->slot.front];
	out->next = NULL;
	out->prev = NULL;
	out->now.current = (struct place){ NULL, 0 };
	out->now.copies.pending = out->now.copies.former = NULL;
	if (out->endpoints.unique_id_len == 0)
		out->endpoints.unique_id = NULL;
	if (out->now.state != CONNECTION_HANDSHAKING)
		out->now.handshaking_at = NO_AGENT;
	if (restored_has_agent(out))
		restored_wait_for_agent(r);
	else
		out->now.affinity_agent = NO_AGENT;
	out->now.attempts = 0;
	out->now.reading = CLIENT_READING;
	out->now.tail = TAIL_NONE; /* the kernel tells of the client's end again */
	out->now.tail_told = TAIL_UNTOLD;
	return 0;
}

/* Those of a compact connection were compared with its slot when the descriptors were sorted. */
static int restored_get_counts(const struct restored *r, struct tcp_counts *out)
{
	*out = (struct tcp_counts){ .read = r->slot->bytes_read, .written = r->slot->bytes_written };
	return r->image ? tcp_counts_get(r->slot->fd, out) : 0;
}

static int restored_look_at(struct restored *r)
{
	struct tcp_counts counts;
	int result = restored_find_image(r);

	if (result == 0)
		result = restored_take_image(r);
	if (result == 0)
		result = restored_get_counts(r, &counts);
	return result == 0 ? restored_take_bytes(r, &counts) : result;
}

/* --- into this process --- */

/* Both processes have the same cluster file, so a number means the same in both. @fd is owned from now on. On 0 the
 * newest connection is this one, in memory of this life. */
static int restored_unpack(struct connection_home *home, const struct connection *image, int fd)
{
	const size_t cap = connection_packed_len(image);
	uint8_t *packed = malloc(cap);

	if (!packed) {
		close(fd);
		return CSSL_E_NO_MEMORY;
	}
	struct wire_writer w = wire_writer(packed, cap);
	connection_pack(image, &w);
	int r = connection_unpack(home, NULL, fd, packed, (size_t)wire_writer_len(&w));
	free(packed);
	return r;
}

/* In memory of this life from now on, so that it outlives this process, too. */
static void restored_take_up(const struct restored *r, struct connection *c)
{
	c->now.account.stream = r->c.now.account.stream;
	c->busy->resumes = r->busy.resumes;
	if (c->busy->preamble)
		c->busy->preamble->now.told = r->preamble.now.told;
	connection_preamble_count(c); /* without memory, the limit counts one less */
	connection_save(c);
}

static int restored_make(const struct restoring *all, struct table_slot *s, enum slot_state was)
{
	struct connection_home *home = all->home;
	struct restored r = { .home = home, .slot = s, .was = was, .read_last = all->read_last };
	int result = restored_look_at(&r);

	if (result == 0 && connection_fault_at(&r.c, "slot.restoring") == FAULT_DROP)
		result = CSSL_E_RANGE;
	if (result < 0)
		close(s->fd);
	else
		result = restored_unpack(home, &r.c, s->fd);
	if (result == 0)
		restored_take_up(&r, home->connections); /* the newest */
	free(r.input);
	free(r.owed);
	return result;
}

/* If the socket is closed meanwhile, it resets: a FIN could pass for the end of an answer (law 8). */
static void restored_end_by_reset(int fd, bool on)
{
	const struct linger at_once = { .l_onoff = on };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static void count_not_restored(struct fates *f)
{
	atomic_fetch_add(&f->reset, 1);
	atomic_fetch_add(&f->not_restored, 1);
}

/* The slot shows that the connection is being restored. If this process crashes or hangs meanwhile, the next one gives
 * the connection up. */
void connection_restore(const struct restoring *all, struct table_slot *s)
{
	struct connection_home *home = all->home;
	struct fates *fates = &home->shared->notes->shared->fates;
	const enum slot_state was = table_slot_state(s);

	table_slot_restore(s);
	restored_end_by_reset(s->fd, true);
	int r = restored_make(all, s, was);
	table_slot_to(s, SLOT_FREE);
	if (r < 0) {
		log_paced(LOG_WARNING, NULL, "connection not restored", "cause=%s", error_text(r));
		count_not_restored(fates);
		return;
	}
	restored_end_by_reset(connection_fd(home->connections), false);
	struct connection *c = home->connections; /* the newest */
	connection_go_on(c);
	connection_reattach_if_up(c);
	if (c->now.state == CONNECTION_CLOSING)
		count_not_restored(fates);
	else
		home->went_on++;
}
