/* agent_worker.c: building and dismantling of a worker's objects. */
#include <stdlib.h>

#include "net/arena.h"
#include "net/handshake_limit.h"
#include "net/log.h"
#include "proto/error.h"
#include "sslagent/agent.h"
#include "sslagent/service/backend_pool.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/connection/connection.h"
#include "sslagent/direct.h"
#include "sslagent/link.h"
#include "sslagent/tls/handshake.h"

static void bury_all(struct turn_end *t)
{
	struct agent_worker *home = (struct agent_worker *)((char *)t - offsetof(struct agent_worker, burial));

	while (home->buried) {
		struct connection *c = home->buried;
		home->buried = c->next_by_id;
		slabs_give(&home->connection_blocks, c);
	}
}

void agent_worker_bury(struct agent_worker *home, struct connection *c)
{
	c->next_by_id = home->buried;
	home->buried = c;
	worker_at_turn_end(home->worker, &home->burial);
}

uint64_t agent_worker_add_link(struct agent_worker *home, struct link *l)
{
	*link_next(l) = home->links;
	home->links = l;
	return ++home->links_begun;
}

void agent_worker_remove_link(struct agent_worker *home, struct link *l)
{
	for (struct link **at = &home->links; *at; at = link_next(*at)) {
		if (*at == l) {
			*at = *link_next(l);
			return;
		}
	}
}

struct link *agent_worker_find_link(struct agent_worker *home, uint64_t number)
{
	for (struct link *l = home->links; l; l = *link_next(l)) {
		if (link_number(l) == number)
			return l;
	}
	return NULL;
}

int agent_worker_open(struct agent_worker *home)
{
	home->burial.fn = bury_all;
	home->window_len = home->conf->limits.window_len;
	turn_share_init(&home->handshake_share, home->worker, HANDSHAKE_TURN_NS, connection_go_on);
	slabs_init(&home->connection_blocks, sizeof(struct connection));
	slabs_init(&home->facts_blocks, CONNECTION_FACTS_BLOCK);
	service_blocks_init(&home->service_blocks);
	holdings_init(&home->holdings, home->conf->limits.kept_len / home->self->workers);
	home->handshake_places =
		handshake_limit_create(home->conf->limits.handshakes, home->conf->limits.handshakes_per_source);
	home->live_pool = live_pool_create();
	home->frozen = arena_create(sizeof(struct live_part));
	home->handshakes_arena = handshake_arena_create();
	home->backends = backend_pool_create(home);
	if (!home->handshake_places || !home->live_pool || !home->frozen || !home->handshakes_arena ||
		!home->backends) {
		log_event(LOG_ERROR, NULL, "worker not started", "cause=%s", cssl_strerror(CSSL_E_NO_MEMORY));
		return CSSL_E_NO_MEMORY;
	}
	int r = cluster_join_worker(home->cluster, home->worker);
	if (r < 0)
		return r;
	for (size_t i = 0; i < home->self->direct_count; i++) {
		struct direct_listener *d = direct_listen(home, &home->self->direct[i]);
		if (!d)
			return CSSL_E_SYSTEM;
	}
	return 0;
}

void agent_worker_close(struct agent_worker *home)
{
	direct_close_all(home);
	for (struct link *l = home->links; l; l = *link_next(l))
		link_close(l);
	backend_pool_destroy(home->backends);
	home->backends = NULL;
	cluster_leave_worker(home->cluster, home->worker);
}

void agent_worker_release(struct agent_worker *home)
{
	bury_all(&home->burial);
	direct_release_all(home);
	handshake_limit_destroy(home->handshake_places);
	live_pool_destroy(home->live_pool);
	arena_destroy(home->frozen);
	arena_destroy(home->handshakes_arena);
	service_blocks_clear(&home->service_blocks);
	slabs_clear(&home->facts_blocks);
	slabs_clear(&home->connection_blocks);
	tls_contexts_unref(home->contexts);
	free(home->connections.buckets);
}
