/* connection_restoring.c: restores all connections that the process before left, a few in each turn of the loop.
 * Between them the worker serves: links to agents come up, connections that are restored go on, and new clients are
 * accepted. So a large table delays nobody but those whose turn has not come. While it lasts, the links show agents
 * that the others will follow (ragent/worker/ragent_worker.c), and agents keep their streams. Those come first
 * whose clients probably wait: bytes passed lately.
 *
 * Bytes that the process before had read and not logged are in the worker's read buffer. This process reads into the
 * same buffer, so connections with such bytes are restored before the first turn.
 */
#include <stdlib.h>

#include "net/memory/container_of.h"
#include "net/points/fault.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "ragent/connection/connection_owner.h"
#include "ragent/connection/revival/connection_restoring.h"
#include "ragent/connection/revival/revival.h"

/* So long the worker may restore at a time: as long as it did other work before, within these limits. */
#define SLICE_LEAST_NS UINT64_C(2000000)
#define SLICE_MOST_NS  UINT64_C(10000000)

/* Bytes passed so short ago, the pause included. */
#define ACTIVE_LATELY_MS 1000u

static struct table_slot *restoring_next_slot(struct restoring *all)
{
	struct slot_table *t = all->home->table;

	return t ? slot_table_next(t, &all->walk, worker_index(all->home->worker)) : NULL;
}

/* The active ones, then those that are left. */
static struct table_slot *restoring_next_in_order(struct restoring *all)
{
	struct table_slot *s = restoring_next_slot(all);

	if (s || all->pass == PASS_OF_ALL)
		return s;
	all->pass = PASS_OF_ALL;
	all->walk = (struct slot_walk){ 0 };
	return restoring_next_slot(all);
}

static bool restoring_is_due(const struct restoring *all, const struct table_slot *s)
{
	const struct connection *c = container_of(s, struct connection, slot);

	return all->pass == PASS_OF_ALL || worker_now_ms(all->home->worker) - c->now.active_ms < ACTIVE_LATELY_MS;
}

/* Did the process before read bytes of this client that are in no log, but in its worker's read buffer? */
static bool restoring_has_unlogged(const struct connection_home *home, const struct table_slot *s)
{
	const struct trail *t = s->trail;
	struct tcp_counts counts;

	return table_slot_has_trail(table_slot_state(s)) && s->fd >= 0 && (uintptr_t)t % _Alignof(struct trail) == 0 &&
	       slot_table_has(home->table, t, sizeof *t) && tcp_counts_get(s->fd, &counts) == 0 &&
	       counts.read != byte_log_end(&t->log);
}

static void restoring_restore_read_last(struct restoring *all)
{
	struct connection_home *home = all->home;
	const uint8_t *buffers = home->shared->notes->outliving.read_buffers;
	struct table_slot *s;

	all->read_last = buffers ? buffers + (size_t)worker_index(home->worker) * WORKER_READ_BUFFER_LEN : NULL;
	while ((s = restoring_next_slot(all)) != NULL) {
		if (restoring_has_unlogged(home, s))
			connection_restore(all, s);
		notes_beat_all(home->shared->notes);
	}
	all->read_last = NULL;
	all->walk = (struct slot_walk){ 0 };
}

static void restoring_end(struct restoring *all)
{
	struct connection_home *home = all->home;

	if (home->table)
		slot_table_forget_former(home->table, worker_index(home->worker));
	home->restoring = NULL;
	turn_end_cancel(&all->next);
	free(all);
	connection_reattach_anew(home);
	home->on_restored(home);
}

static void restoring_restore(struct restoring *all, struct table_slot *s)
{
	struct connection_home *home = all->home;

	if (restoring_is_due(all, s) && table_slot_has_all(s) && s->fd >= 0)
		connection_restore(all, s);
	notes_beat(home->shared->notes, 1 + worker_index(home->worker));
}

/* All slots are behind it. 1, or 0: there is no more. */
static bool restoring_forget_some(struct restoring *all)
{
	const unsigned worker = worker_index(all->home->worker);

	notes_beat(all->home->shared->notes, 1 + worker);
	return slot_table_forget_next(all->home->table, worker, &all->forgotten);
}

/* With busy clients a turn is long, and those whose connections are left wait, too. */
static uint64_t restoring_slice_ns(const struct restoring *all, uint64_t now_ns)
{
	const uint64_t other_ns = now_ns - all->stopped_ns;

	if (all->stopped_ns == 0 || other_ns < SLICE_LEAST_NS)
		return SLICE_LEAST_NS;
	return other_ns < SLICE_MOST_NS ? other_ns : SLICE_MOST_NS;
}

static void restoring_restore_some(struct restoring *all)
{
	const uint64_t now_ns = notes_now_ns(), end_ns = now_ns + restoring_slice_ns(all, now_ns);

	while (notes_now_ns() < end_ns && fault_at("slot.next", NULL, NULL) != FAULT_DROP) {
		struct table_slot *s = restoring_next_in_order(all);
		if (s) {
			restoring_restore(all, s);
		} else if (!restoring_forget_some(all)) {
			restoring_end(all);
			return;
		}
	}
	all->stopped_ns = notes_now_ns();
	worker_at_turn_end(all->home->worker, &all->next);
}

/* Once in a turn, so that the loop sees what came. */
static void restoring_on_next(struct turn_end *t)
{
	struct restoring *all = container_of(t, struct restoring, next);
	struct worker *w = all->home->worker;

	if (all->turn == worker_turn(w)) {
		worker_at_turn_end(w, &all->next);
		return;
	}
	all->turn = worker_turn(w);
	restoring_restore_some(all);
}

void connection_restore_rest(struct connection_home *home)
{
	struct restoring *all = home->restoring;
	struct table_slot *s;

	if (!all)
		return;
	while ((s = restoring_next_in_order(all)) != NULL)
		restoring_restore(all, s);
	restoring_end(all);
}

int connection_restore_begin(struct connection_home *home)
{
	struct restoring *all = calloc(1, sizeof *all);

	if (!all)
		return CSSL_E_NO_MEMORY;
	all->home = home;
	all->next.fn = restoring_on_next;
	home->restoring = all;
	restoring_restore_read_last(all);
	worker_at_turn_end(home->worker, &all->next);
	return 0;
}

static void restoring_forget_all(struct notes *n)
{
	for (unsigned worker = 0; worker + 1 < n->thread_count; worker++) {
		slot_table_forget_former(n->table, worker);
		notes_beat_all(n);
	}
	atomic_fetch_add(&n->shared->fates.starts_without_restore, 1);
	log_event(LOG_ERROR, NULL, "nothing is restored",
		"cause=\"%u processes in a row died while they restored connections, or right after it\" "
		"effect=\"the connections of before are reset; new clients are served\" "
		"remedy=\"see the cause of each 'ragent died': killed, look for a lack of memory; else, report it\"",
		n->died_restoring);
}

void connection_judge_former(struct notes *n)
{
	if (notes_forbid_restore(n))
		restoring_forget_all(n);
	for (unsigned worker = 0; worker + 1 < n->thread_count; worker++) {
		const uintptr_t blamed = (uintptr_t)notes_blamed(n, worker);
		struct connection *c = (struct connection *)(blamed & ~(uintptr_t)WORK_NOT_ON_BYTES);
		atomic_store(&n->working[worker], NULL);
		if (!slot_table_has_slot(n->table, c))
			continue;
		if (!(blamed & WORK_NOT_ON_BYTES))
			notes_suspect(n, &c->endpoints.client);
		table_slot_to(&c->slot, SLOT_VOID); /* restored, it would do the same to the next process */
	}
}
