/* peers.c: the set of the other agents, and links that they open. The peer of a link is unknown until the opening is
 * done; then the peer takes the link. When an opening fails, the log names the agents that it may have come from.
 */
#include "sslagent/cluster/peers/peers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "net/loop/listener.h"
#include "net/report/log.h"
#include "net/report/log_pace.h"
#include "proto/error.h"
#include "proto/session_id.h"
#include "sslagent/cluster/broadcast/peer_clock.h"
#include "sslagent/counters.h"

#define BACKLOG      1024 /* a full queue refuses agents, too */
#define OPENINGS_MAX 256u /* at a time; an opening takes milliseconds */

static const struct newcomers_limits opening_limits = {
	.count = OPENINGS_MAX, .of_source = OPENINGS_MAX, .stalled_ms = PEER_LINK_SILENT_MS
};

/* Make this agent the only member: the others enter when they live. */
static int peers_place(struct peers *all)
{
	const struct conf *conf = all->of.conf;

	if (conf->broadcast.replicas == 0 || conf->broadcast.replicas >= all->count)
		return 0;
	all->placement = placement_create(all->count);
	if (!all->placement)
		return CSSL_E_NO_MEMORY;
	for (unsigned i = 0; i < all->count; i++)
		placement_name(all->placement, i, conf->agents[i].name);
	placement_set(all->placement, all->self, MEMBER_HERE);
	return 0;
}

static struct peer *peer_create(struct peers *all, agent_index index)
{
	struct peer *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->all = all;
	p->index = index;
	p->conf = &all->of.conf->agents[index];
	p->origin = session_id_origin(p->conf->name);
	p->retry_every_ms = PEER_RETRY_FIRST_MS;
	p->refused_logged_ms = -PEER_REFUSED_EVERY_MS;
	return p;
}

int peers_init(struct peers *all, const struct peers_conf *conf)
{
	*all = (struct peers){ .of = *conf,
		.self = (agent_index)(conf->self - conf->conf->agents),
		.count = (unsigned)conf->conf->agent_count };
	newcomers_init(&all->newcomers, &opening_limits);
	all->flags = calloc(all->count, sizeof *all->flags);
	all->at = calloc(all->count, sizeof(struct peer *));
	if (!all->flags || !all->at || peers_place(all) != 0)
		return CSSL_E_NO_MEMORY;
	for (unsigned i = 0; i < all->count; i++) {
		if (i == all->self)
			continue;
		all->at[i] = peer_create(all, (agent_index)i);
		if (!all->at[i])
			return CSSL_E_NO_MEMORY;
	}
	return 0;
}

void peers_free(struct peers *all)
{
	assert(all->handles == 0);
	for (unsigned i = 0; all->at && i < all->count; i++)
		free(all->at[i]);
	free(all->at);
	free(all->flags);
	placement_destroy(all->placement);
}

struct peer *peers_next(const struct peers *all, const struct peer *p)
{
	for (unsigned i = p ? p->index + 1u : 0; i < all->count; i++)
		if (all->at[i])
			return all->at[i];
	return NULL;
}

bool peers_hold_key(const struct peers *all, uint32_t generation)
{
	for (struct peer *p = peers_next(all, NULL); p; p = peers_next(all, p))
		if (p->state == PEER_UP && p->key_held < generation)
			return false;
	return true;
}

struct placement_ranks peers_holders(const struct peers *all, const uint8_t *id, unsigned wanted)
{
	struct placement_ranks ranks = placement_rank(all->placement, id, wanted), others = { 0 };

	for (unsigned i = 0; i < ranks.count; i++)
		if (ranks.agents[i] != all->self)
			others.agents[others.count++] = ranks.agents[i];
	return others;
}

/* Links that others open */

struct incoming {
	struct newcomer place; /* first */
	struct peers *all;
	struct peer_link *link;
};

static void incoming_remove(struct incoming *i)
{
	newcomers_remove(&i->all->newcomers, &i->place);
	free(i);
}

static bool incoming_may_be(const struct conf_agent *agent, const char *address)
{
	struct sockaddr_storage peer = agent->peer;
	char text[ADDRESS_TEXT_MAX];
	const char *port = strrchr(address, ':');

	if (strncmp(address, "unix", 4) == 0)
		return agent->peer_socket != NULL;
	address_format((const struct sockaddr *)&peer, text);
	return port && strrchr(text, ':') && strrchr(text, ':') - text == port - address &&
	       memcmp(text, address, (size_t)(port - address)) == 0;
}

/* Agents that should have a link to this agent, have none, and may have this address. */
static void incoming_candidates(const struct peers *all, const char *address, char *out, size_t cap)
{
	size_t len = 0;

	out[0] = '\0';
	for (struct peer *p = peers_next(all, NULL); p; p = peers_next(all, p)) {
		int written;

		if (p->state == PEER_UP || strcmp(p->conf->name, all->of.self->name) > 0 ||
			!incoming_may_be(p->conf, address))
			continue;
		written = snprintf(out + len, cap - len, "%s%s", len > 0 ? "," : "", p->conf->name);
		if (written < 0 || (size_t)written >= cap - len)
			return;
		len += (size_t)written;
	}
}

static void incoming_log_refused(struct peers *all, const char *address, const char *name, const char *cause)
{
	int64_t now_ms = cluster_now_ms();
	char names[512];

	count(COUNT_PEER_LINKS_REFUSED);
	if (now_ms - all->refused_logged_ms < PEER_REFUSED_EVERY_MS)
		return;
	all->refused_logged_ms = now_ms;
	incoming_candidates(all, address, names, sizeof names);
	if (!name)
		name = names[0] ? names : "unknown";
	log_event(LOG_WARNING, NULL, "peer refused", "peer=%s address=%s cause=%s", name, address, cause);
}

/* Of a link that has no peer: nothing else comes when it closes. */
static void on_rejected_closed(struct peer_link *l)
{
	peers_handle_closed(l->ctx);
}

static void incoming_reject(struct incoming *i)
{
	struct peer_link *l = i->link;

	l->ctx = i->all;
	incoming_remove(i);
	peer_link_close(l);
}

static void on_open(struct peer_link *l)
{
	struct incoming *i = l->ctx;
	struct peers *all = i->all;
	const struct link_hello *hello = peer_link_peer(l);
	const struct conf_agent *named = conf_agent_find(all->of.conf, hello->name);
	struct peer *p = named ? all->at[named - all->of.conf->agents] : NULL;

	/* The opening proves an agent of this key. Check that the cluster file names it, and that it is the side that
	 * connects. */
	if (!p || strcmp(hello->name, all->of.self->name) > 0) {
		incoming_log_refused(all, l->address, hello->name, "not an agent that connects here");
		incoming_reject(i);
		return;
	}
	incoming_remove(i);
	peer_take_link(p, l);
}

static void on_end(struct peer_link *l, int error)
{
	struct incoming *i = l->ctx;
	struct peers *all = i->all;

	incoming_log_refused(all, l->address, NULL, cssl_error_is_own(error) ? cssl_strerror(error) : "it went away");
	incoming_reject(i);
}

static void on_heard(struct peer_link *l)
{
	struct incoming *i = l->ctx;

	newcomer_proven(&i->place, worker_now_ms(i->all->of.link.worker));
}

static const struct peer_link_ops incoming_ops = {
	.on_open = on_open,
	.on_end = on_end,
	.on_closed = on_rejected_closed,
	.on_heard = on_heard,
};

/* Of two openings one ends: that of the newcomer, or that of another one. */
static void incoming_count_displaced(void)
{
	count(COUNT_PEER_OPENINGS_DISPLACED);
	log_paced(LOG_WARNING, NULL, "no room for an opening of a peer",
		"cause=\"too many connections that have not shown agents.key\" remedy=\"let only agents connect to "
		"peer: a firewall\"");
}

/* 1, or 0: no newcomer gives way. */
static bool incoming_make_room(struct peers *all, uint8_t source)
{
	struct worker *w = all->of.link.worker;
	struct newcomer *p = newcomers_victim(&all->newcomers, source, worker_now_ms(w), worker_turn(w));

	if (p) {
		incoming_count_displaced();
		incoming_reject((struct incoming *)p);
	}
	return !newcomers_full(&all->newcomers, source);
}

static void incoming_start(struct peers *all, int fd, const struct sockaddr *from, uint8_t source)
{
	struct incoming *i = calloc(1, sizeof *i);
	struct peer_link_conf conf = all->of.link;

	if (!i) {
		close(fd);
		return;
	}
	i->all = all;
	conf.ops = &incoming_ops;
	conf.ctx = i;
	i->link = peer_link_accept(&conf, fd, from);
	if (!i->link) {
		free(i);
		return;
	}
	all->handles++;
	newcomers_add(&all->newcomers, &i->place, source, worker_now_ms(conf.worker), worker_turn(conf.worker));
}

static void on_accept(void *ctx, int fd, const struct sockaddr_storage *from)
{
	struct peers *all = ctx;
	const uint8_t source = newcomers_source(&all->newcomers, fd, (const struct sockaddr *)from);

	if (incoming_make_room(all, source)) {
		incoming_start(all, fd, (const struct sockaddr *)from, source);
		return;
	}
	incoming_count_displaced();
	close(fd);
}

static const struct listener_ops listener_ops = { .on_accept = on_accept, .on_closed = peers_handle_closed };

static struct listener *peers_listen_on(
	struct peers *all, const struct sockaddr *address, unsigned mode, char *error, size_t error_cap)
{
	char text[ADDRESS_TEXT_MAX];
	int uv_error = 0;
	struct listener *l =
		listener_create(all->of.link.worker, address, BACKLOG, mode, &listener_ops, all, &uv_error);

	if (l)
		all->handles++;
	else
		snprintf(error, error_cap, "%s: cannot listen for agents: %s", address_format(address, text),
			uv_strerror(uv_error));
	return l;
}

/* The UNIX socket first: an agent that reaches the TCP address then finds this socket too. */
int peers_listen(struct peers *all, char *error, size_t error_cap)
{
	struct sockaddr_storage address = { .ss_family = AF_UNIX };
	struct sockaddr_un *un = (struct sockaddr_un *)&address;

	if (all->of.self->peer_socket) {
		if (strlen(all->of.self->peer_socket) >= sizeof un->sun_path) {
			snprintf(error, error_cap, "%s: too long for a socket", all->of.self->peer_socket);
			return CSSL_E_CONFIG;
		}
		strcpy(un->sun_path, all->of.self->peer_socket);
		all->unix_socket = peers_listen_on(all, (const struct sockaddr *)&address, 0600, error, error_cap);
		if (!all->unix_socket)
			return CSSL_E_SYSTEM;
	}
	all->tcp = peers_listen_on(all, (const struct sockaddr *)&all->of.self->peer, 0, error, error_cap);
	return all->tcp ? 0 : CSSL_E_SYSTEM;
}

void peers_close(struct peers *all)
{
	all->life = PEERS_CLOSING;
	all->handles++; /* this call */
	for (struct peer *p = peers_next(all, NULL); p; p = peers_next(all, p))
		peer_close(p);
	listener_close(all->unix_socket);
	listener_close(all->tcp);
	all->unix_socket = all->tcp = NULL;
	while (all->newcomers.count)
		incoming_reject((struct incoming *)all->newcomers.ring.next);
	peers_handle_closed(all);
}
