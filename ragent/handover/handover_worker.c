/* handover_worker.c: first each link with its descriptor. Then the worker itself, with the words of agents: a link that
 * comes up deletes them, so links come first. Then the connections, many in a message; each names its streams and their
 * links.
 */
#include "ragent/handover/handover_worker.h"

#include <string.h>

#include <sodium.h>

#include "net/log.h"
#include "proto/error.h"
#include "ragent/handover/handover_self.h"
#include "ragent/link/link_handover.h"

#define MESSAGE_FULL (1024u * 1024u)

/* --- links --- */

static void put_descriptors(struct handover_message *m, const struct link_descriptors *d)
{
	handover_message_put_fd(m, d->socket);
	if (d->memory >= 0)
		handover_message_put_fd(m, d->memory);
	if (d->pidfd >= 0)
		handover_message_put_fd(m, d->pidfd);
}

/* agent (2) | its worker (2) | link */
static int pack_link(struct link *l, struct handover_message *m)
{
	const struct link_descriptors d = link_descriptors(l);
	struct framed_saved saved;
	int r = link_freeze(l, &saved);
	size_t len = 4 + (r == 0 ? link_packed_len(l) : 0);

	handover_message_begin(m, HANDOVER_LINK);
	uint8_t *room = r == 0 ? handover_message_room(m, len) : NULL;
	if (room) {
		struct wire_writer w = wire_writer(room, len);
		wire_put_u16(&w, (uint16_t)link_agent(l));
		wire_put_u16(&w, (uint16_t)link_agent_worker(l));
		link_pack(l, &d, &saved, &w);
		m->len = (size_t)wire_writer_len(&w);
		put_descriptors(m, &d);
	}
	sodium_memzero(&saved, sizeof saved);
	return r < 0 || room ? r : CSSL_E_NO_MEMORY;
}

static int pack_links(struct ragent_worker *rw, struct handover_message *m, handover_send *send, void *ctx)
{
	for (unsigned a = 0; a < agents_count(rw->home.shared->agents); a++) {
		for (unsigned i = 0; i < rw->home.links.of[a].count; i++) {
			struct link *l = rw->home.links.of[a].at[i];
			int r = link_open(l) ? pack_link(l, m) : 0;
			if (r == 0 && link_open(l))
				r = send(ctx, m);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int unpack_link(struct ragent_worker *rw, const struct handover_map *map, struct handover_message *m)
{
	struct wire_reader r = wire_reader(m->data, m->len);
	uint16_t agent = wire_u16(&r), worker = wire_u16(&r);
	size_t len = wire_left(&r);
	const uint8_t *link = wire_bytes(&r, len);
	int ours = link && agent < map->agent_count ? map->agents[agent] : NO_AGENT;

	int fds[LINK_DESCRIPTORS_MAX];
	unsigned count = 0;

	if (m->fd_count == 0 || m->fd_count > LINK_DESCRIPTORS_MAX)
		return CSSL_E_SYSTEM; /* no room for descriptors here */
	if (ours == NO_AGENT || worker >= rw->home.links.of[ours].count)
		return CSSL_E_MISMATCH;
	while (m->fd_count > count && count < LINK_DESCRIPTORS_MAX)
		fds[count++] = handover_message_take_fd(m);
	return link_unpack(rw->home.links.of[ours].at[worker], fds, count, link, len);
}

/* --- connections --- */

/* length (4) | connection; once for each descriptor */
static int pack_connection(const struct connection *c, struct handover_message *m)
{
	size_t cap = 4 + connection_packed_len(c), before = m->len;
	uint8_t *room = handover_message_room(m, cap);

	if (!room)
		return CSSL_E_NO_MEMORY;
	struct wire_writer w = wire_writer(room + 4, cap - 4);
	connection_pack(c, &w);
	size_t len = (size_t)wire_writer_len(&w);
	wire_store_u32(room, (uint32_t)len);
	m->len = before + 4 + len;
	handover_message_put_fd(m, connection_fd(c));
	return 0;
}

static int pack_connections(struct ragent_worker *rw, struct handover_message *m, handover_send *send, void *ctx)
{
	int r = 0;

	handover_message_begin(m, HANDOVER_CONNECTIONS);
	for (const struct connection *c = rw->home.connections; c && r == 0; c = connection_next(c)) {
		if (!connection_can_be_packed(c))
			continue;
		r = pack_connection(c, m);
		if (r == 0 && (m->fd_count == HANDOVER_FDS_MAX || m->len >= MESSAGE_FULL)) {
			r = send(ctx, m);
			handover_message_begin(m, HANDOVER_CONNECTIONS);
		}
	}
	return r == 0 && m->fd_count ? send(ctx, m) : r;
}

static int unpack_connections(struct ragent_worker *rw, const struct handover_map *map, struct handover_message *m)
{
	struct wire_reader r = wire_reader(m->data, m->len);

	while (wire_left(&r) > 0) {
		size_t len = wire_u32(&r);
		const uint8_t *connection = wire_bytes(&r, len);
		int fd = handover_message_take_fd(m);
		if (fd < 0)
			return CSSL_E_SYSTEM; /* no room for descriptors here */
		int result = connection ? connection_unpack(&rw->home, map, fd, connection, len) : CSSL_E_TRUNCATED;
		if (result < 0)
			return result;
	}
	return wire_reader_end(&r);
}

/* --- a whole worker --- */

/* Finish all ends that are under way; one end may cause others. The other process can go on with no re-attach. */
static void settle(struct ragent_worker *rw)
{
	int again = 1;

	while (again) {
		again = 0;
		for (unsigned a = 0; a < agents_count(rw->home.shared->agents); a++)
			for (unsigned i = 0; i < rw->home.links.of[a].count; i++)
				again |= link_settle(rw->home.links.of[a].at[i]);
		connection_home_each(&rw->home, connection_end_if_broken);
		connection_home_each(&rw->home, connection_stop_reattaching);
	}
}

int handover_worker_pack(struct ragent_worker *rw, handover_send *send, void *ctx)
{
	struct handover_message m = { 0 };

	settle(rw);
	int r = pack_links(rw, &m, send, ctx);
	if (r == 0)
		r = handover_self_pack(rw, &m);
	if (r == 0)
		r = send(ctx, &m);
	if (r == 0)
		r = pack_connections(rw, &m, send, ctx);
	handover_message_clear(&m);
	return r;
}

int handover_worker_unpack(struct ragent_worker *rw, const struct handover_map *map, struct handover_message *m)
{
	switch ((enum handover_type)m->type) {
	case HANDOVER_WORKER: return handover_self_unpack(rw, map, m);
	case HANDOVER_LINK: return unpack_link(rw, map, m);
	case HANDOVER_CONNECTIONS: return unpack_connections(rw, map, m);
	default: return CSSL_E_TYPE;
	}
}

void handover_worker_resume(struct ragent_worker *rw)
{
	links_each(&rw->home.links, link_resume);
	worker_refresh_now(rw->home.worker);
}

void handover_worker_let_go(struct ragent_worker *rw)
{
	connection_home_each(&rw->home, connection_let_go);
	requests_end(&rw->requests, "this process is being replaced");
	ragent_worker_park(rw);
	worker_refresh_now(rw->home.worker);
}

void handover_worker_go_on(struct ragent_worker *rw)
{
	worker_refresh_now(rw->home.worker); /* times that come are younger than this turn */
	ragent_worker_unpark(rw);
	links_each(&rw->home.links, link_prove); /* the process after this one will show another proof */
	connection_home_each(&rw->home, connection_go_on);
}
