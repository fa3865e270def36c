/* cluster_links.c: agent-agent links that other agents open. The peer of a link is unknown until the opening is done;
 * then the peer takes the link. When an opening fails, the log names the agents that it may have come from.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/address.h"
#include "net/listener.h"
#include "net/log_pace.h"
#include "proto/error.h"
#include "sslagent/counters.h"
#include "sslagent/cluster/peer.h"

#define BACKLOG      1024 /* a full queue refuses agents, too */
#define LOG_EVERY_MS 10000

#define OPENINGS_MAX 256u /* at a time; an opening takes milliseconds */

static const struct newcomers_limits opening_limits = {
	.count = OPENINGS_MAX, .of_source = OPENINGS_MAX, .stalled_ms = PEER_LINK_SILENT_MS
};

void cluster_links_init(struct cluster *c)
{
	newcomers_init(&c->newcomers, &opening_limits);
}

struct incoming {
	struct newcomer place; /* first */
	struct cluster *cluster;
	struct peer_link *link;
};

static void incoming_remove(struct incoming *i)
{
	newcomers_remove(&i->cluster->newcomers, &i->place);
	free(i);
}

static bool same_host(const struct conf_agent *agent, const char *address)
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
static void candidates(const struct cluster *c, const char *address, char *out, size_t cap)
{
	size_t len = 0;

	out[0] = '\0';
	for (struct peer *p = peer_next(c, NULL); p; p = peer_next(c, p)) {
		int written;

		if (p->state == PEER_UP || strcmp(p->conf->name, c->self->name) > 0 || !same_host(p->conf, address))
			continue;
		written = snprintf(out + len, cap - len, "%s%s", len > 0 ? "," : "", p->conf->name);
		if (written < 0 || (size_t)written >= cap - len)
			return;
		len += (size_t)written;
	}
}

static void log_refused(struct cluster *c, const char *address, const char *name, const char *cause)
{
	int64_t now_ms = cluster_now_ms();
	char names[512];

	count(COUNT_PEER_LINKS_REFUSED);
	if (now_ms - c->refused_logged_ms < LOG_EVERY_MS)
		return;
	c->refused_logged_ms = now_ms;
	candidates(c, address, names, sizeof names);
	if (!name)
		name = names[0] ? names : "unknown";
	log_event(LOG_WARNING, NULL, "peer refused", "peer=%s address=%s cause=%s", name, address, cause);
}

/* The cluster closes a link that has no peer. */
static void on_rejected_closed(struct peer_link *l)
{
	cluster_handle_closed(l->ctx);
}

static const struct peer_link_ops rejected_ops = { .on_closed = on_rejected_closed };

static void reject(struct incoming *i)
{
	struct peer_link *l = i->link;

	l->ctx = i->cluster;
	l->ops = &rejected_ops;
	incoming_remove(i);
	peer_link_close(l);
}

static void on_open(struct peer_link *l)
{
	struct incoming *i = l->ctx;
	struct cluster *c = i->cluster;
	const struct link_hello *hello = peer_link_peer(l);
	int index = cluster_agent_index(c, hello->name);

	/* The opening proves an agent of this key. Check that the cluster file names it, and that it is the side that
	 * connects. */
	if (index < 0 || !c->peers[index] || strcmp(hello->name, c->self->name) > 0) {
		log_refused(c, l->address, hello->name, "not an agent that connects here");
		reject(i);
		return;
	}
	incoming_remove(i);
	peer_take_link(c->peers[index], l);
}

static void on_end(struct peer_link *l, int error)
{
	struct incoming *i = l->ctx;
	struct cluster *c = i->cluster;

	log_refused(c, l->address, NULL, cssl_error_is_own(error) ? cssl_strerror(error) : "it went away");
	reject(i);
}

static void on_heard(struct peer_link *l)
{
	struct incoming *i = l->ctx;

	newcomer_proven(&i->place, worker_now_ms(i->cluster->main));
}

static const struct peer_link_ops incoming_ops = {
	.on_open = on_open,
	.on_end = on_end,
	.on_closed = on_rejected_closed,
	.on_heard = on_heard,
};

/* Of two openings one ends: that of the newcomer, or that of another one. */
static void count_displaced(void)
{
	count(COUNT_PEER_OPENINGS_DISPLACED);
	log_paced(LOG_WARNING, NULL, "no room for an opening of a peer",
		"cause=\"too many connections that have not shown agents.key\" remedy=\"let only agents connect to "
		"peer: a "
		"firewall\"");
}

/* 1, or 0: no newcomer gives way. */
static bool make_room(struct cluster *c, uint8_t source)
{
	struct newcomer *p = newcomers_victim(&c->newcomers, source, worker_now_ms(c->main), worker_turn(c->main));

	if (p) {
		count_displaced();
		reject((struct incoming *)p);
	}
	return !newcomers_full(&c->newcomers, source);
}

static struct incoming *incoming_make(struct cluster *c, int fd, const struct sockaddr *from)
{
	struct incoming *i = calloc(1, sizeof *i);
	struct peer_link_conf conf = peer_link_conf_of(c, &incoming_ops, i);

	if (!i) {
		close(fd);
		return NULL;
	}
	i->cluster = c;
	i->link = peer_link_accept(&conf, fd, from);
	if (i->link)
		return i;
	free(i);
	return NULL;
}

static void on_accept(void *ctx, int fd, const struct sockaddr_storage *from)
{
	struct cluster *c = ctx;
	const uint8_t source = newcomers_source(&c->newcomers, fd, (const struct sockaddr *)from);

	if (!make_room(c, source)) {
		count_displaced();
		close(fd);
		return;
	}
	struct incoming *i = incoming_make(c, fd, (const struct sockaddr *)from);
	if (!i)
		return;
	c->handles++;
	newcomers_add(&c->newcomers, &i->place, source, worker_now_ms(c->main), worker_turn(c->main));
}

static const struct listener_ops listener_ops = { .on_accept = on_accept, .on_closed = cluster_handle_closed };

static struct listener *listen_on(
	struct cluster *c, const struct sockaddr *address, unsigned mode, char *error, size_t error_cap)
{
	char text[ADDRESS_TEXT_MAX];
	int uv_error = 0;
	struct listener *l = listener_create(c->main, address, BACKLOG, mode, &listener_ops, c, &uv_error);

	if (l)
		c->handles++;
	else
		snprintf(error, error_cap, "%s: cannot listen for agents: %s", address_format(address, text),
			uv_strerror(uv_error));
	return l;
}

/* The UNIX socket first: an agent that reaches the TCP address then finds this socket too. */
int cluster_links_listen(struct cluster *c, char *error, size_t error_cap)
{
	struct sockaddr_storage address = { .ss_family = AF_UNIX };
	struct sockaddr_un *un = (struct sockaddr_un *)&address;

	if (c->self->peer_socket) {
		if (strlen(c->self->peer_socket) >= sizeof un->sun_path) {
			snprintf(error, error_cap, "%s: too long for a socket", c->self->peer_socket);
			return CSSL_E_CONFIG;
		}
		strcpy(un->sun_path, c->self->peer_socket);
		c->unix_socket = listen_on(c, (const struct sockaddr *)&address, 0600, error, error_cap);
		if (!c->unix_socket)
			return CSSL_E_SYSTEM;
	}
	c->tcp = listen_on(c, (const struct sockaddr *)&c->self->peer, 0, error, error_cap);
	return c->tcp ? 0 : CSSL_E_SYSTEM;
}

void cluster_links_close(struct cluster *c)
{
	listener_close(c->unix_socket);
	listener_close(c->tcp);
	c->unix_socket = c->tcp = NULL;
	while (c->newcomers.count)
		reject((struct incoming *)c->newcomers.ring.next);
}

uint64_t cluster_links_queued(const struct cluster *c)
{
	uint64_t queued = 0;

	for (struct peer *p = peer_next(c, NULL); p; p = peer_next(c, p))
		if (p->state == PEER_UP)
			queued += stream_pending(&p->link->stream);
	return queued;
}
