/* connection_home.c: builds the objects that a worker's connections share, and takes them down. */
#include "sslagent/connection/connection_home.h"

#include "net/limits/handshake_limit.h"
#include "net/memory/container_of.h"
#include "net/memory/secret_heap.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "sslagent/backend/backend_pool.h"
#include "sslagent/connection/connection_events.h"
#include "sslagent/tls/handshake.h"
#include "sslagent/tls/tls_contexts.h"

static void bury_all(struct turn_end *t)
{
	struct connection_home *home = container_of(t, struct connection_home, burial);

	while (home->buried) {
		struct connection *c = container_of(home->buried, struct connection, by_id);
		home->buried = home->buried->next;
		slabs_give(&home->connection_blocks, c);
	}
}

static void on_heap_trim(struct deadline *d)
{
	struct connection_home *home = container_of(d, struct connection_home, heap_trim);

	if (secret_heap_trim() == SECRET_HEAP_HAS_SPARE)
		deadline_set(home->worker, d, HEAP_TRIM_MS);
}

int connection_home_open(struct connection_home *home)
{
	home->up = &connection_upward;
	home->burial.fn = bury_all;
	home->heap_trim.fn = on_heap_trim;
	home->window_len = home->conf->limits.window_len;
	slabs_init(&home->connection_blocks, sizeof(struct connection));
	slabs_init(&home->facts_blocks, KEPT_FACTS_BLOCK);
	service_blocks_init(&home->service_blocks);
	holdings_init(&home->holdings, home->conf->limits.kept_len / home->self->workers);
	holdings_init(&home->held, home->holdings.limit);
	home->handshake_places =
		handshake_limit_create(home->conf->limits.handshakes, home->conf->limits.handshakes_per_source);
	turn_share_init(
		&home->handshake_share, home->worker, HANDSHAKES_SMALL_NS, HANDSHAKES_LARGE_NS, connection_take_turn);
	home->live_pool = live_pool_create(tls_contexts_algorithms(home->conf));
	slabs_init_secret(&home->frozen, sizeof(struct live_part));
	backend_home_open(
		&home->backend_home, home->worker, home->conf, &home->self->backend_source, home->backend_states);
	home->backends = backend_pool_create(home->worker, home->conf);
	if (home->handshake_places && home->live_pool && home->backends)
		return 0;
	log_event(LOG_ERROR, NULL, "worker not started", "cause=%s", cssl_strerror(CSSL_E_NO_MEMORY));
	return CSSL_E_NO_MEMORY;
}

void connection_home_close(struct connection_home *home)
{
	backend_pool_destroy(home->backends);
	home->backends = NULL;
	deadline_cancel(&home->heap_trim);
}

void connection_home_release(struct connection_home *home)
{
	bury_all(&home->burial);
	handshake_limit_destroy(home->handshake_places);
	live_pool_destroy(home->live_pool);
	slabs_clear(&home->frozen);
	service_blocks_clear(&home->service_blocks);
	backend_home_release(&home->backend_home);
	slabs_clear(&home->facts_blocks);
	slabs_clear(&home->connection_blocks);
	tls_contexts_unref(home->contexts);
	table_clear(&home->table);
}
