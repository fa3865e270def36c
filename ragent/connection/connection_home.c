/* connection_home.c: makes the objects that a worker's connections share, and passes changes of the worker on to
 * them. */
#include "ragent/connection/connection_home.h"

#include <assert.h>
#include <stdlib.h>

#include "conf/memory.h"
#include "net/process/scheduling.h"
#include "net/report/log.h"
#include "proto/client_hello.h"
#include "proto/error.h"
#include "ragent/connection/connection_client.h"
#include "ragent/connection/connection_saved.h"

_Static_assert(2 + FINE_SIZES <= MEMORY_RAGENT_SLAB_SIZES, "the table has room for each size");
_Static_assert(2 * FINE_BLOCK_MAX <= MEMORY_OF_CERTIFICATES, "and for two copies with a certificate");
_Static_assert(SLABS_BLOCK_MAX <= MEMORY_OF_WAITING_RECORDS, "and for the records that a connection may have in it");

static struct slab_source *home_slab_source(struct table_share *s)
{
	return s->table ? &s->source : NULL;
}

static void home_make_memory(struct connection_home *home)
{
	const unsigned worker = worker_index(home->worker);

	home->table = home->shared->notes ? home->shared->notes->table : NULL;
	slot_table_share_init(&home->connection_share, home->table, TABLE_CONNECTIONS, worker);
	slot_table_share_init(&home->belonging_share, home->table, TABLE_BELONGINGS, worker);
	slabs_init_from(&home->connection_blocks, sizeof(struct connection), home_slab_source(&home->connection_share));
	blocks_init(&home->blocks, home_slab_source(&home->belonging_share));
	slabs_init_from(&home->trails, sizeof(struct trail), home_slab_source(&home->belonging_share));
	slabs_init(&home->busy_parts, sizeof(struct busy_part));
}

int connection_home_init(struct connection_home *home, const struct ragent_shared *shared, struct worker *w)
{
	const struct conf_ragent *self = shared->self;

	home->shared = shared;
	home->worker = w;
	holdings_init(&home->holdings, self->limits.kept_len / self->workers);
	partials_init(&home->partials, memory_for_partials(&self->limits, self->workers));
	home_make_memory(home);
	home->working = shared->notes ? &shared->notes->working[worker_index(w)] : &home->nobody;
	mover_init(&home->mover, home);
	pace_init(&home->takeovers, self->moves.takeovers_per_s, self->workers);
	for (unsigned reason = 0; reason < END_REASON_COUNT; reason++)
		home->ended_lines[reason].to = LOG_ACCESS;
	home->hello_scratch = malloc(CLIENT_HELLO_MAX);
	home->cause = "";
	home->ownerships = ownerships_create();
	home->handshakes = handshake_limit_create(self->limits.handshakes, self->limits.handshakes_per_source);
	home->preambles = handshake_limit_create(self->limits.preambles, self->limits.preambles_per_source);
	home->of_agents = calloc(agents_count(shared->agents) + 1, sizeof *home->of_agents);
	home->of_listeners = calloc(shared->front_count + 1, sizeof *home->of_listeners);
	if (!home->hello_scratch || !home->ownerships || !home->handshakes || !home->preambles || !home->of_agents ||
		!home->of_listeners)
		return CSSL_E_NO_MEMORY;
	return links_init(&home->links, shared->agents, worker_index(w), self->workers);
}

void connection_home_clear(struct connection_home *home)
{
	assert(!home->connections);
	links_destroy(&home->links);
	links_clear(&home->links);
	free(home->hello_scratch);
	free(home->ownerships);
	handshake_limit_destroy(home->handshakes);
	handshake_limit_destroy(home->preambles);
	free(home->of_agents);
	free(home->of_listeners);
	slabs_clear(&home->connection_blocks);
	blocks_clear(&home->blocks);
	slabs_clear(&home->trails);
	slabs_clear(&home->busy_parts);
}

void connection_home_each(struct connection_home *home, void (*fn)(struct connection *c))
{
	struct connection *next;

	for (struct connection *c = home->connections; c; c = next) {
		next = connection_next(c);
		fn(c);
	}
}

/* How many lines about ended connections were left out. */
static void home_tell_left_out(struct connection_home *home)
{
	for (unsigned reason = 0; reason < END_REASON_COUNT; reason++)
		log_pace_tell(&home->ended_lines[reason], LOG_INFO, "ended");
}

/* These connections are served as all others. */
static void home_tell_table_full(struct connection_home *home)
{
	const uint64_t refused = home->connection_share.refused + home->belonging_share.refused;

	if (refused > 0 && counter_get(&home->counters.table_full) == 0)
		log_event(LOG_WARNING, NULL, "some connections end if this process dies",
			"worker=%u cause=\"the memory that outlives it is full\" "
			"remedy=\"a higher limits: connections makes it larger\"",
			worker_index(home->worker));
	counter_set(&home->counters.table_full, refused);
}

void connection_home_look_for_storm(struct connection_home *home)
{
	const uint32_t handshakes = handshake_limit_count(home->handshakes);

	switch (storm_look(&home->storm, handshakes, worker_now_ms(home->worker))) {
	case STORM_BEGINS:
		counter_add(&home->counters.storms, 1);
		scheduling_hurry();
		break;
	case STORM_ENDS: scheduling_calm(); break;
	case STORM_GOES_ON: break;
	}
}

void connection_home_tick(struct connection_home *home)
{
	home_tell_table_full(home);
	counter_set(&home->counters.kept_bytes, home->holdings.len);
	counter_set(&home->counters.handshakes_under_way, handshake_limit_count(home->handshakes));
	connection_home_look_for_storm(home);
	connection_end_partials(home);
	home_tell_left_out(home);
	mover_look(&home->mover);
}
