/* next_life.c: the first worker loses all that a dead process loses, and touches nothing else. */
#include "tests/unit/ragent/next_life.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/limits/admission.h"
#include "net/loop/dormant.h"
#include "ragent/connection/connection_client.h"
#include "ragent/connection/connection_preamble.h"
#include "ragent/connection/revival/revival.h"

/* AddressSanitizer's, if it is there. */
void __asan_unpoison_memory_region(void const volatile *at, size_t len) __attribute__((weak));

/* --- death --- */

static void forget_place(const struct place *p)
{
	if (p->link)
		link_stream_end(p->link, p->stream);
}

static void lose_busy(struct connection *c)
{
	struct busy_part *a = c->busy;

	forget_place(&a->frozen);
	link_wait_cancel(&a->waiter);
	turn_end_cancel(&a->compact_due);
	deadline_cancel(&a->later);
	handshake_limit_leave(c->home->handshakes, &a->place);
	partials_note(&c->home->partials, &a->partial, 0, PARTIAL_SAME_RECORD, 0);
	connection_preamble_drop(c);
	holdings_set(&c->home->holdings, &a->holding, 0);
	a->connection = NULL;
	stream_close(&a->client);
}

static void lose_compact(struct connection *c)
{
	dormant_remove(c->home->dormant, c->slot.fd, c);
	close(c->slot.fd);
}

/* Its table of descriptors is the next process's, too. */
static void lose(struct connection *c)
{
	const struct linger at_once = { .l_onoff = 1 };
	const int fd = fcntl(connection_fd(c), F_DUPFD_CLOEXEC, 3);

	ck_assert_int_ge(fd, 0);
	deadline_cancel(&c->deadline);
	forget_place(&c->now.current);
	if (c->busy)
		lose_busy(c);
	else
		lose_compact(c);
	c->slot.fd = fd;
	if (table_slot_has_all(&c->slot))
		return;
	c->slot.fd = -1;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(fd);
}

/* What is in the table stays. */
static void lose_memory(struct connection_home *home)
{
	home->connections = NULL;
	slabs_init(&home->connection_blocks, connection_len());
	blocks_init(&home->blocks, NULL);
	slabs_init(&home->trails, sizeof(struct trail));
}

/* A block that this process has used lies in the table. */
static const uint8_t *in_table;

static uint8_t *table_begin(void)
{
	uint8_t *at = (uint8_t *)((uintptr_t)in_table & ~(uintptr_t)(SLAB_LEN - 1));

	while (slot_table_has(d.shared.notes->table, at - SLAB_LEN, SLAB_LEN))
		at -= SLAB_LEN;
	return at;
}

uint8_t *end_of_table(size_t len)
{
	return table_begin() + slot_table_len(d.shared.notes->table) - len;
}

static void on_worker_closed(struct ragent_worker *rw)
{
}

/* What all workers share begins again. */
static void lose_shared(struct ragent_shared *s)
{
	agents_destroy(s->agents);
	admission_destroy(s->admission);
	s->agents = agents_create(s->conf);
	s->admission = admission_create(s->self->limits.connections, s->self->limits.connections_per_source);
	for (size_t i = 0; i < s->front_count; i++)
		atomic_store(&s->fronts[i].connections, 0);
	s->boot_id++;
}

/* On a new link, a stream may have the number of an earlier one. */
static void forget_what_agents_got(void)
{
	struct fake_frame *f;

	for (unsigned i = 0; i < AGENTS; i++)
		while ((f = fake_agent_take(d.agents[i], FRAME_DATA)) != NULL)
			free(f);
}

void life_ends(void)
{
	in_table = (const uint8_t *)connection_newest();
	connection_home_each(&d.rw->home, lose);
	lose_memory(&d.rw->home);
	ragent_worker_stop(d.rw, 0, on_worker_closed);
	wait_until(d.rw->state == RAGENT_WORKER_CLOSED);
	turns(4); /* the handles of its clients */
	ragent_worker_destroy(d.rw);
	d.rw = NULL;
	lose_shared(&d.shared);
	forget_what_agents_got();
	if (__asan_unpoison_memory_region) /* only the dead process knew which blocks were free */
		__asan_unpoison_memory_region(table_begin(), slot_table_len(d.shared.notes->table));
}

struct trail_image *image_left_by(struct connection *c)
{
	struct trail *t = trail_of(c);

	ck_assert_ptr_nonnull(t);
	return &t->at[atomic_load(&t->now) & 1];
}

struct connection_now *left_by(struct connection *c)
{
	return table_slot_has_trail(table_slot_state(&c->slot)) ? &image_left_by(c)->now : &c->now;
}

/* --- the next life --- */

static unsigned times_restored;

static void on_restored(struct connection_home *home)
{
	times_restored++;
}

void next_life_begins(void)
{
	times_restored = 0;
	slot_table_begin_life(d.shared.notes->table, (uint32_t)d.shared.boot_id);
	d.rw = ragent_worker_create(&d.shared, w);
	ck_assert_ptr_nonnull(d.rw);
	d.rw->home.on_restored = on_restored;
	ck_assert_int_eq(ragent_worker_start(d.rw), 0);
	ck_assert_int_eq(connection_restore_begin(&d.rw->home), 0);
	wait_until(times_restored == 1);
}

void die(void)
{
	life_ends();
	next_life_begins();
}

void all_agents_are(int ready)
{
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_ready(d.agents[i], ready);
	wait_until(agents_up() == (ready ? AGENTS : 0));
}

void expect_fates(unsigned went_on, unsigned not_restored)
{
	const struct fates *f = &d.shared.notes->shared->fates;

	ck_assert_uint_eq(d.rw->home.went_on, went_on);
	ck_assert_uint_eq(f->not_restored, not_restored);
	ck_assert_uint_eq(f->reset, not_restored);
}

void asked_to_reattach(struct live_connection *l)
{
	struct fake_frame *f = frame_at(l->agent, FRAME_REATTACH);
	struct frame_reattach asked;

	ck_assert_int_eq(frame_reattach_read(&(struct frame){ .len = f->len, .payload = f->payload }, &asked), 0);
	ck_assert_uint_eq(asked.stream, l->stream);
	l->stream = f->stream;
	free(f);
}

void reattached_say(const struct live_connection *l, const struct connection *c, uint64_t records)
{
	const struct frame_reattached told = { .frame = c->now.account.frames + 1,
		.bytes = c->now.queued - c->now.account.base,
		.client_records = records };
	uint8_t payload[FRAME_REATTACHED_LEN];

	frame_reattached_write(payload, &told);
	fake_agent_send(d.agents[l->agent], l->stream, FRAME_REATTACHED, 0, payload, sizeof payload);
}

void owner_goes_on(struct live_connection *l, uint64_t records, enum connection_state state)
{
	asked_to_reattach(l);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_REATTACHING);
	reattached_say(l, connection_only(), records);
	wait_until(connection_only()->now.state != CONNECTION_REATTACHING);
	ck_assert_int_eq(connection_only()->now.state, state);
}
