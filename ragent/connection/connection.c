/* connection.c: the life of a connection, and of its busy part: created, compact and busy again, freed; and what it
 * weighs in its worker's budget (net/memory/holdings.h). */
#include <string.h>
#include <unistd.h>
#include <sodium.h>

#include "conf/memory.h"
#include "net/limits/admission.h"
#include "net/loop/dormant.h"
#include "net/memory/container_of.h"
#include "net/memory/prefetch.h"
#include "proto/error.h"
#include "ragent/connection/connection_client.h"
#include "ragent/connection/connection_end.h"
#include "ragent/connection/connection_life.h"
#include "ragent/connection/connection_owner.h"
#include "ragent/connection/connection_preamble.h"
#include "ragent/connection/connection_saved.h"
#include "ragent/connection/connection_states.h"
#include "ragent/connection/connection_stream.h"

const struct connection_id *connection_identity(const struct connection *c)
{
	return &c->id;
}

struct connection *connection_next(const struct connection *c)
{
	return c->next;
}

const struct service_traits *connection_service(const struct connection *c)
{
	const struct conf_listener *l = c->front->conf;

	for (size_t i = 0; c->now.agreed && i < l->alpn_count; i++)
		if (strcmp(l->alpn[i].protocol, agreed_alpn(c->now.agreed)) == 0)
			return &service_traits[l->alpn[i].service];
	return &service_traits[l->service];
}

int connection_fd(const struct connection *c)
{
	return c->busy ? stream_fd(&c->busy->client) : c->slot.fd;
}

_Static_assert(sizeof(struct connection) + sizeof(struct busy_part) <= MEMORY_OF_RAGENT_CONNECTION / 2,
	"what --check says of a connection has room for its copies and names, too");

size_t connection_len(void)
{
	return sizeof(struct connection);
}

/* --- its busy part --- */

struct kept connection_kept(const struct connection *c)
{
	const uint64_t records = c->now.position.now.client_records;

	if (c->busy)
		return c->busy->kept;
	return (struct kept){ .first_record = records, .consumed_record = records, .next_record = records };
}

static bool life_is_in_order(const struct connection *c)
{
	if (c->now.tail != TAIL_NONE || c->now.server_side != SERVER_OPEN || c->now.reading != CLIENT_READING)
		return false;
	return c->now.state == CONNECTION_OWNED || (c->now.state == CONNECTION_RESTING && !connection_needs_owner(c));
}

static bool life_is_exposed(const struct exposure *e, const struct position *p)
{
	return e->losses || e->silent || e->records > p->checkpoint.client_records;
}

bool connection_leaves_nothing_over(const struct connection *c)
{
	const struct busy_part *a = c->busy;

	if (!life_is_in_order(c))
		return false;
	if (!a)
		return true;
	if (life_is_exposed(&a->exposure, &c->now.position))
		return false;
	if (a->frozen.link || a->order || a->note.current || a->partial.len || a->waiter.prev || a->pause_began_ms ||
		a->move_answer != MOVE_ANSWER_NOT_DUE || a->again.next)
		return false;
	if (c->now.queued != c->slot.bytes_written) /* also what the stream wrote in this turn, and has not told yet */
		return false;
	return !a->kept.data && a->kept.next_record == c->now.position.now.client_records &&
	       a->client.state == STREAM_OPEN && !stream_kept(&a->client);
}

static void life_make_compact(struct connection *c)
{
	struct busy_part *a = c->busy;
	connection_acknowledge(c, ACCEPTED_IF_SILENT);
	int fd = stream_dup_fd(&a->client);

	if (fd >= 0 && dormant_add(c->home->dormant, fd, c) < 0) {
		close(fd);
		fd = -1;
	}
	if (fd < 0) { /* on failure it keeps its busy part */
		stream_read_start(&a->client);
		return;
	}
	c->slot.fd = fd;
	holdings_set(&c->home->holdings, &a->holding, 0);
	c->busy = NULL;
	a->connection = NULL;
	deadline_cancel(&a->later);
	stream_close(&a->client);
	connection_save(c);
	sealed_blob_drop(&a->note.former, &c->home->blocks); /* no image names it any more */
}

static void life_on_turn_end(struct turn_end *t)
{
	struct busy_part *a = container_of(t, struct busy_part, compact_due);

	if (connection_leaves_nothing_over(a->connection))
		life_make_compact(a->connection);
}

void connection_may_compact(struct connection *c)
{
	if (c->busy)
		worker_at_turn_end(c->home->worker, &c->busy->compact_due);
}

static int life_add_busy(struct connection *c)
{
	struct busy_part *a = slabs_take(&c->home->busy_parts);

	if (!a)
		return CSSL_E_NO_MEMORY;
	*a = (struct busy_part){ .connection = c };
	a->home = c->home;
	a->compact_due.fn = life_on_turn_end;
	connection_stream_init(a);
	c->busy = a;
	return 0;
}

static void life_free_busy(struct connection *c)
{
	if (!c->busy)
		return;
	turn_end_cancel(&c->busy->compact_due);
	handshake_limit_leave(c->home->handshakes, &c->busy->place);
	connection_preamble_drop(c);
	holdings_set(&c->home->holdings, &c->busy->holding, 0);
	deadline_cancel(&c->busy->later);
	slabs_give(&c->home->busy_parts, c->busy);
	c->busy = NULL;
}

int connection_expand(struct connection *c)
{
	if (c->busy)
		return 0;
	const struct kept kept = connection_kept(c);
	int r = life_add_busy(c);
	if (r < 0)
		return r;
	int fd = c->slot.fd;
	dormant_remove(c->home->dormant, fd, c);
	c->slot.fd = -1;
	r = stream_open_fd(&c->busy->client, c->home->worker, &connection_client_ops, fd);
	if (r < 0) {
		life_free_busy(c);
		return r;
	}
	c->busy->kept = kept;
	connection_save(c); /* from now on it changes */
	connection_begin_reading(c);
	if (c->now.state == CONNECTION_OWNED) /* so that it becomes compact again in any case */
		connection_arm_deadline(c);
	return 0;
}

int connection_expand_or_end(struct connection *c)
{
	int r = connection_expand(c);

	if (r < 0)
		connection_end(c, END_INTERNAL, END_RESET);
	return r;
}

void connection_on_input(void *holder)
{
	connection_expand_or_end(holder);
}

/* --- all of it --- */

void connection_foresee_frame(const void *holder, enum framed_distance distance)
{
	const struct connection *c = holder;

	if (distance == FRAMED_LATER) {
		prefetch(c, sizeof *c);
		return;
	}
	prefetch(c->busy, sizeof *c->busy);
	prefetch(c->slot.trail, sizeof(struct trail));
}

struct connection *connection_create(struct connection_home *home, struct front *front)
{
	struct connection *c = slabs_take(&home->connection_blocks);

	if (!c)
		return NULL;
	*c = (struct connection){ .home = home };
	if (life_add_busy(c) < 0) {
		connection_discard(c);
		return NULL;
	}
	c->slot.fd = -1;
	c->front = front;
	c->now.handshake_agent = c->now.owner = c->now.affinity_agent = c->now.handshaking_at = c->now.move_target =
		NO_AGENT;
	c->deadline.fn = connection_deadline_is_over;
	c->now.accepted_ms = c->now.active_ms = connection_now_ms(c);
	position_init(&c->now.position);
	randombytes_buf(c->id.bytes, sizeof c->id.bytes);
	return c;
}

void connection_join(struct connection *c)
{
	struct connection **head = &c->home->connections;

	atomic_fetch_add(&c->front->connections, 1);
	c->next = *head;
	c->prev = head;
	if (c->next)
		c->next->prev = &c->next;
	*head = c;
	counter_add(&c->home->counters.connections_open, 1);
}

void connection_discard(struct connection *c)
{
	fine_block_give(&c->home->blocks, c->endpoints.unique_id, c->endpoints.unique_id_len);
	agreed_destroy(&c->home->blocks, c->now.agreed);
	connection_void(c);
	connection_forget_trail(c);
	life_free_busy(c);
	table_slot_to(&c->slot, SLOT_FREE);
	slabs_give(&c->home->connection_blocks, c);
}

/* Its descriptor is closed by now. */
void connection_free(struct connection *c)
{
	if (c->now.source == SOURCE_COUNTED)
		admission_leave_source(c->home->shared->admission, &c->endpoints.client);
	admission_leave(c->home->shared->admission);
	atomic_fetch_sub(&c->front->connections, 1);
	deadline_cancel(&c->deadline);
	struct connection_home *home = c->home;
	mover_forget(&home->mover, c);
	counter_add(&home->counters.client_queued_bytes, c->slot.bytes_written - c->now.queued);
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	connection_discard(c);
	counter_add(&home->counters.connections_open, (uint64_t)-1);
	home->on_left(home);
}

/* --- its worker's budget --- */

static size_t budget_weight(const struct connection *c)
{
	const struct busy_part *a = c->busy;
	const size_t note = a->note.current ? fine_block_len(sealed_blob_len(a->note.current)) : 0;

	return a->kept.cap + a->unused + connection_log_len(c) + note + (c->now.queued - c->slot.bytes_written);
}

void connection_weigh(struct connection *c)
{
	if (c->busy)
		holdings_set(&c->home->holdings, &c->busy->holding, budget_weight(c));
}

/* Gives up bytes that are only needed if the agent is lost, and the unused part of the block. */
static void budget_give_up_replay(struct connection *c)
{
	struct busy_part *a = c->busy;

	const bool may_drop = a->note.current && connection_service(c)->loss != SERVICE_RESOLVES_LOSS;

	if (kept_replay_len(&a->kept) > 0 || may_drop) {
		counter_add(&c->home->counters.kept_given_up, 1);
		log_paced(LOG_INFO, &c->id, "replay given up",
			"cause=\"the connections keep too many bytes\" effect=\"no repetition after a loss\" "
			"limit=%llu remedy=limits.kept",
			(unsigned long long)c->home->holdings.limit);
	}
	kept_forget_consumed(&a->kept, &c->home->blocks);
	kept_fit(&a->kept, &c->home->blocks);
	if (may_drop)
		note_drop(&a->note, &c->home->blocks);
	if (table_slot_has_all(&c->slot))
		connection_save(c);
	connection_weigh(c);
}

static void budget_give_up_log(struct connection *c)
{
	if (connection_log_len(c) == 0)
		return;
	counter_add(&c->home->counters.logs_given_up, 1);
	log_paced(LOG_INFO, &c->id, "cannot outlive a death",
		"cause=\"too much is kept\" limit=%llu remedy=limits.kept",
		(unsigned long long)c->home->holdings.limit);
	connection_give_up_log(c);
	connection_weigh(c);
}

void connection_relieve(struct connection_home *home)
{
	struct holding *h;

	while ((h = holdings_greatest(&home->holdings)) != NULL) {
		struct connection *c = container_of(h, struct busy_part, holding)->connection;
		uint32_t before = h->len;
		budget_give_up_replay(c);
		if (h->len == before)
			budget_give_up_log(c);
		if (h->len < before)
			continue;
		counter_add(&home->counters.kept_ended, 1);
		log_paced(LOG_WARNING, &c->id, "connection ended to free memory", "bytes=%u of=%llu limit=%llu", before,
			(unsigned long long)home->holdings.len, (unsigned long long)home->holdings.limit);
		connection_end_at_once(c, END_OVERLOADED);
		holdings_set(&home->holdings, h, 0);
	}
}
