/* link_acceptor.c: one small object for each opening: a stream that feeds opening_step() until it is complete. Then
 * it gives its descriptor, keys and early bytes away.
 */
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <sodium.h>

#include "net/limits/newcomers.h"
#include "net/loop/listener.h"
#include "net/memory/container_of.h"
#include "net/report/log_pace.h"
#include "net/stream/stream.h"
#include "proto/error.h"
#include "sslagent/carrier/link_acceptor.h"
#include "sslagent/counters.h"

#define BACKLOG        1024 /* if the queue is full, RAgents are refused, too */
#define UNREAD_MORE_MS 10u

#define LINK_SOCKET_MODE 0660u

static const struct newcomers_limits opening_limits = {
	.count = OPENINGS_MAX, .of_source = OPENINGS_MAX, .stalled_ms = OPENING_SILENT_MS
};

struct link_acceptor {
	struct link_acceptor_home home;
	struct listener *listener;
	struct newcomers newcomers;
	unsigned open_objects; /* listener and openings whose handles are not closed yet */
	int pidfd;             /* this process, for RAgents of this host; -1: there is none */
	void (*on_closed)(void *ctx);
	void *ctx;
};

struct arriving {
	struct stream stream;
	struct deadline deadline;
	struct newcomer place;
	struct link_acceptor *acceptor;
	struct opening *opening;
	enum link_bytes bytes; /* the kinds that we offered */
	int memory;            /* came with the opening; -1: none */
};

static struct arriving *arriving_of(struct stream *s)
{
	return container_of(s, struct arriving, stream);
}

static void acceptor_object_closed(void *acceptor)
{
	struct link_acceptor *a = acceptor;

	if (--a->open_objects == 0 && a->on_closed)
		a->on_closed(a->ctx);
}

static struct arriving *arriving_at(struct newcomer *p)
{
	return container_of(p, struct arriving, place);
}

static void arriving_end(struct arriving *v)
{
	newcomers_remove(&v->acceptor->newcomers, &v->place);
	deadline_cancel(&v->deadline);
	stream_close(&v->stream);
}

static void arriving_refuse(struct arriving *v, const char *cause)
{
	const struct link_hello *peer = opening_peer(v->opening);

	log_paced(LOG_WARNING, NULL, "link refused", "ragent=%s cause=%s", peer ? peer->name : "unknown", cause);
	count(COUNT_LINKS_REFUSED);
	arriving_end(v);
}

static bool goes_through_memory(const struct arriving *v)
{
	return v->bytes == LINK_BYTES_IN_MEMORY && opening_peer(v->opening)->bytes == LINK_BYTES_IN_MEMORY;
}

/* The opening is complete: the worker gets everything. */
static void arriving_give_away(struct arriving *v, const uint8_t *early, size_t early_len)
{
	struct link_arrival *arrival = calloc(1, sizeof *arrival);

	if (goes_through_memory(v))
		early_len = 0; /* these were bells for bytes in the memory */
	if (!arrival || (early_len && !(arrival->early = malloc(early_len)))) {
		free(arrival);
		arriving_refuse(v, cssl_strerror(CSSL_E_NO_MEMORY));
		return;
	}
	if (early_len)
		memcpy(arrival->early, early, early_len);
	arrival->early_len = early_len;
	arrival->peer = *opening_peer(v->opening);
	arrival->memory = -1;
	arrival->fd = stream_dup_fd(&v->stream);
	if (arrival->fd < 0 || opening_result(v->opening, &arrival->keys) < 0) {
		link_arrival_destroy(arrival);
		arriving_refuse(v, "descriptor cannot be passed to the worker");
		return;
	}
	if (goes_through_memory(v)) {
		arrival->memory = v->memory;
		v->memory = -1;
	}
	v->acceptor->home.give(v->acceptor->home.process, arrival);
	arriving_end(v);
}

static bool is_local(const struct link_acceptor *a)
{
	return a->home.self->link.ss_family == AF_UNIX;
}

/* Sends an opening's message to a RAgent that has the key. It comes with a descriptor of this process, by which
 * RAgent later knows for sure when the process is dead. Over TCP, or if the descriptor cannot be sent, RAgent never
 * knows that. */
static int arriving_answer(struct arriving *v, const uint8_t *out, size_t len)
{
	const int pidfd = v->acceptor->pidfd;
	int r = stream_write(&v->stream, out, len);

	if (r == 0 && pidfd >= 0 && is_local(v->acceptor))
		r = stream_send_fd(&v->stream, pidfd);
	return r;
}

static size_t arriving_on_data(struct stream *s, uint8_t *data, size_t len)
{
	struct arriving *v = arriving_of(s);
	struct worker *w = v->acceptor->home.main;
	uint8_t out[OPENING_MESSAGE_MAX];
	size_t out_len = 0, taken = 0;
	int r = opening_step(v->opening, data, len, &taken, out, &out_len);

	if (r >= 0 && v->place.stage == NEWCOMER_SILENT && opening_peer(v->opening)) {
		/* the peer has the key, or repeats a message of a process that has it */
		newcomer_proven(&v->place, worker_now_ms(w));
		deadline_set(w, &v->deadline, OPENING_TIMEOUT_MS);
	}
	if (r >= 0 && out_len && arriving_answer(v, out, out_len) < 0)
		r = CSSL_E_NO_MEMORY;
	if (r < 0)
		arriving_refuse(v, cssl_strerror(r));
	else if (r == OPENING_DONE && goes_through_memory(v) && v->memory < 0)
		arriving_refuse(v, "the memory for its bytes did not come along");
	else if (r == OPENING_DONE)
		arriving_give_away(v, data + taken, len - taken);
	return r == OPENING_MORE ? taken : len;
}

static void arriving_on_fd(struct stream *s, int fd)
{
	struct arriving *v = arriving_of(s);

	if (v->memory < 0)
		v->memory = fd;
	else
		close(fd);
}

static void arriving_on_end(struct stream *s, enum stream_end end, int uv_error)
{
	arriving_end(arriving_of(s));
}

static void arriving_on_closed(struct stream *s)
{
	struct arriving *v = arriving_of(s);
	struct link_acceptor *a = v->acceptor;

	opening_destroy(v->opening);
	if (v->memory >= 0)
		close(v->memory);
	free(v);
	acceptor_object_closed(a);
}

static const struct stream_ops arriving_ops = {
	.on_data = arriving_on_data,
	.on_fd = arriving_on_fd,
	.on_end = arriving_on_end,
	.on_closed = arriving_on_closed,
};

/* A peer is not silent if this loop was too slow to read. */
static bool arriving_has_unread(const struct arriving *v)
{
	uint8_t byte;

	return recv(stream_fd(&v->stream), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static void on_timeout(struct deadline *d)
{
	struct arriving *v = container_of(d, struct arriving, deadline);

	if (arriving_has_unread(v))
		deadline_set(v->acceptor->home.main, d, UNREAD_MORE_MS);
	else
		arriving_refuse(v, v->place.stage == NEWCOMER_SILENT ? "it says nothing" : "opening timed out");
}

/* Of two openings one ends: that of the newcomer, or that of another one. */
static void count_displaced(void)
{
	count(COUNT_LINK_OPENINGS_DISPLACED);
	log_paced(LOG_WARNING, NULL, "no room for an opening of a link",
		"cause=\"too many connections that have not shown link.key\" remedy=\"let only RAgents connect to "
		"link: "
		"link_group, or a firewall\"");
}

/* false: no opening gives way. */
static bool link_acceptor_make_room(struct link_acceptor *a, uint8_t source)
{
	struct worker *w = a->home.main;
	struct newcomer *p = newcomers_victim(&a->newcomers, source, worker_now_ms(w), worker_turn(w));

	if (p) {
		count_displaced();
		arriving_end(arriving_at(p));
	}
	return !newcomers_full(&a->newcomers, source);
}

static struct arriving *arriving_make(struct link_acceptor *a, int fd)
{
	struct arriving *v = calloc(1, sizeof *v);
	struct link_hello hello;

	if (!v) {
		close(fd);
		return NULL;
	}
	a->home.fill_hello(a->home.process, &hello);
	v->acceptor = a;
	v->memory = -1;
	v->bytes = hello.bytes;
	v->deadline.fn = on_timeout;
	if (is_local(a))
		stream_expect_fds(&v->stream);
	v->opening = opening_answer(a->home.link_key, &hello, LINK_ROLE_RAGENT);
	if (!v->opening)
		close(fd);
	else if (stream_open_fd(&v->stream, a->home.main, &arriving_ops, fd) == 0)
		return v;
	opening_destroy(v->opening);
	free(v);
	return NULL;
}

static void acceptor_on_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct link_acceptor *a = ctx;
	struct worker *w = a->home.main;
	const uint8_t source = newcomers_source(&a->newcomers, fd, (const struct sockaddr *)peer);

	if (!link_acceptor_make_room(a, source)) {
		count_displaced();
		close(fd);
		return;
	}
	struct arriving *v = arriving_make(a, fd);
	if (!v)
		return;
	a->open_objects++;
	newcomers_add(&a->newcomers, &v->place, source, worker_now_ms(w), worker_turn(w));
	deadline_set(w, &v->deadline, OPENING_SILENT_MS);
	stream_read_start(&v->stream);
}

static const struct listener_ops acceptor_ops = { .on_accept = acceptor_on_accept,
	.on_closed = acceptor_object_closed };

/* --- who may connect --- */

#define GROUP_UNKNOWN ((gid_t)-1)

/* The group of the user that all RAgents become. GROUP_UNKNOWN: there are several, or the user does not exist here. */
static gid_t ragents_group(const struct conf *c)
{
	gid_t group = GROUP_UNKNOWN;

	for (size_t i = 0; i < c->ragent_count; i++) {
		const char *name = c->ragents[i].user ? c->ragents[i].user : CONF_RAGENT_USER_DEFAULT;
		const struct passwd *user = getpwnam(name);
		if (!user || (i > 0 && user->pw_gid != group))
			return GROUP_UNKNOWN;
		group = user->pw_gid;
	}
	return group;
}

/* GROUP_UNKNOWN: the socket cannot be given to them. */
static gid_t group_to_give(const struct conf *c)
{
	const gid_t group = ragents_group(c);

	return geteuid() == 0 || group == getegid() || group_member(group) ? group : GROUP_UNKNOWN;
}

void link_acceptor_warn(const struct conf *c, const struct conf_agent *self)
{
	if (self->link.ss_family == AF_UNIX && !self->link_group && group_to_give(c) == GROUP_UNKNOWN)
		log_event(LOG_WARNING, NULL, "link socket only for this process's user and group",
			"path=%s effect=\"a RAgent of another user cannot connect\" remedy=\"name a group in "
			"link_group, of RAgent's user and of the agent's\"",
			((const struct sockaddr_un *)&self->link)->sun_path);
}

/* The socket's mode is there from the beginning: until it has its group, only this process's user and group can
 * connect. 0, or CSSL_E_CONFIG: logged. */
static int grant_access(const struct conf *c, const struct conf_agent *self)
{
	const char *path = ((const struct sockaddr_un *)&self->link)->sun_path;
	const struct group *named = self->link_group ? getgrnam(self->link_group) : NULL;
	const gid_t group = named ? named->gr_gid : group_to_give(c);

	if (self->link.ss_family != AF_UNIX)
		return 0;
	link_acceptor_warn(c, self);
	const int r = group == GROUP_UNKNOWN ? 0 : listener_give_file(path, (uid_t)-1, group);
	if (r < 0)
		log_event(LOG_ERROR, NULL, "link socket cannot be given to its group", "path=%s group=%s cause=%s",
			path, self->link_group ? self->link_group : "RAgent's", strerror(-r));
	return r < 0 ? CSSL_E_CONFIG : 0;
}

/* --- life --- */

struct link_acceptor *link_acceptor_create(const struct link_acceptor_home *home)
{
	const struct conf_agent *self = home->self;
	struct link_acceptor *a = calloc(1, sizeof *a);
	char text[ADDRESS_TEXT_MAX];
	int uv_error = 0;

	if (!a)
		return NULL;
	a->home = *home;
	a->open_objects = 1;
	a->pidfd = pidfd_open(getpid(), 0);
	newcomers_init(&a->newcomers, &opening_limits);
	a->listener = listener_create(home->main, (const struct sockaddr *)&self->link, BACKLOG, LINK_SOCKET_MODE,
		&acceptor_ops, a, &uv_error);
	if (!a->listener)
		log_event(LOG_ERROR, NULL, "cannot listen for links", "address=%s cause=%s",
			address_format((const struct sockaddr *)&self->link, text), uv_strerror(uv_error));
	else if (grant_access(home->conf, self) == 0)
		return a;
	listener_close(a->listener);
	if (!a->listener)
		link_acceptor_destroy(a); /* otherwise the process ends before the loop runs again, and @a with it */
	return NULL;
}

void link_acceptor_close(struct link_acceptor *a, void (*on_closed_cb)(void *ctx), void *ctx)
{
	a->on_closed = on_closed_cb;
	a->ctx = ctx;
	while (a->newcomers.count)
		arriving_end(arriving_at(a->newcomers.ring.next));
	listener_close(a->listener);
}

void link_acceptor_destroy(struct link_acceptor *a)
{
	if (a && a->pidfd >= 0)
		close(a->pidfd);
	free(a);
}
