/* passed_backends.c: two lists, both short: passes take a round trip, claims follow at once. */
#include <inttypes.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/memory/container_of.h"
#include "proto/error.h"
#include "proto/scratch.h"
#include "sslagent/cluster/cluster_root.h"
#include "sslagent/counters.h"

#define UNCLAIMED_MAX 4096u

/* A backend on its way to another agent. */
struct pass {
	struct thread_task task;
	LIST_ENTRY(pass) next;
	struct cluster *cluster;
	struct cluster_thread *home;
	struct passed_backend backend;
	unsigned target;
	int result;
	int64_t until_ms;
	void (*done)(void *ctx, int error);
	void *ctx;
};

/* A backend that came and is not claimed yet. */
struct unclaimed {
	LIST_ENTRY(unclaimed) next;
	struct passed_backend backend;
	int64_t until_ms;
};

static void passed_free_bytes(uint8_t *bytes, size_t len)
{
	if (bytes)
		OPENSSL_cleanse(bytes, len);
	free(bytes);
}

void passed_backend_destroy(struct passed_backend *p)
{
	if (!p)
		return;
	passed_free_bytes(p->to_backend, p->to_backend_len);
	passed_free_bytes(p->from_backend, p->from_backend_len);
	passed_free_bytes(p->service_state, p->service_state_len);
	if (p->fd >= 0)
		close(p->fd);
	*p = (struct passed_backend){ .fd = -1 };
}

/* A backend's socket resets when its last descriptor is closed, unless its owner has changed that. So this close ends
 * the socket if the owner is gone, and changes nothing if the owner lives. */
static void unclaimed_drop(struct unclaimed_list *list)
{
	for (struct unclaimed *u; (u = LIST_FIRST(list)) != NULL;) {
		LIST_REMOVE(u, next);
		passed_backend_destroy(&u->backend);
		free(u);
		count(COUNT_BACKENDS_UNCLAIMED);
	}
}

/* On the worker again. */
static void pass_report(struct thread_task *task)
{
	struct pass *p = container_of(task, struct pass, task);

	p->done(p->ctx, p->result);
	free(p);
}

static void pass_drop(struct thread_task *task)
{
	struct pass *p = container_of(task, struct pass, task);

	passed_backend_destroy(&p->backend);
	free(p);
}

static void pass_hand_back(struct pass *p, int result)
{
	count(result == 0 ? COUNT_BACKENDS_PASSED : COUNT_BACKENDS_NOT_PASSED);
	p->result = result;
	passed_backend_destroy(&p->backend);
	p->task.run = pass_report;
	cluster_thread_hand(p->home, &p->task);
}

static int pass_send(struct cluster *c, const struct pass *p)
{
	const struct passed_backend *b = &p->backend;
	struct peer *target = c->peers.at[p->target];
	struct stat stat;

	if (!target || !target->link || fstat(b->fd, &stat) != 0)
		return CSSL_E_STATE;
	Cssl__PassedBackend passed = { MESSAGE(passed_backend),
		.connection_id = bytes_of(b->connection.bytes, CONNECTION_ID_LEN), .next_epoch = b->next_epoch,
		.backend = (char *)b->backend, .to_backend = bytes_of(b->to_backend, b->to_backend_len),
		.from_backend = bytes_of(b->from_backend, b->from_backend_len),
		.service_state = bytes_of(b->service_state, b->service_state_len),
		.backend_eof = b->from_state == BACKEND_EOF, .backend_shut = b->to_state == BACKEND_SHUT,
		.inode = stat.st_ino };
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_PASSED_BACKEND,
		.passed_backend = &passed };
	return peer_link_send(target->link, &m, b->fd);
}

/* On the main thread. */
static void pass_begin(struct thread_task *task)
{
	struct pass *p = container_of(task, struct pass, task);
	struct cluster *c = p->cluster;
	int r = pass_send(c, p);

	if (r) {
		pass_hand_back(p, r);
		return;
	}
	p->until_ms = cluster_now_ms() + PASS_PATIENCE_MS;
	LIST_INSERT_HEAD(&c->passed.passes, p, next);
}

/* The caller always waits for @done. Without memory for a pass @done is called at once. */
void cluster_pass_backend(struct cluster *c, struct worker *w, const char *target, struct passed_backend *backend,
	void (*done)(void *ctx, int error), void *ctx)
{
	struct cluster_thread *home = cluster_thread_of(c, w);
	const struct conf_agent *agent = conf_agent_find(c->conf, target);
	struct pass *p = home ? calloc(1, sizeof *p) : NULL;

	if (!p) {
		passed_backend_destroy(backend);
		done(ctx, CSSL_E_NO_MEMORY);
		return;
	}
	p->task = (struct thread_task){ .run = pass_begin, .drop = pass_drop };
	p->cluster = c;
	p->home = home;
	p->backend = *backend;
	*backend = (struct passed_backend){ .fd = -1 };
	p->target = agent ? (unsigned)(agent - c->conf->agents) : c->peers.self; /* there is no peer of that index */
	p->done = done;
	p->ctx = ctx;
	cluster_thread_hand(cluster_main_thread(c), &p->task);
}

bool cluster_can_pass_to(const struct cluster *c, const char *target)
{
	const struct conf_agent *agent = conf_agent_find(c->conf, target);

	return agent && atomic_load(&c->peers.flags[agent - c->conf->agents].passes);
}

static int passed_copy_bytes(const ProtobufCBinaryData *from, uint8_t **to, size_t *len)
{
	*len = from->len;
	*to = from->len > 0 ? malloc(from->len) : NULL;
	if (!*to)
		return from->len > 0 ? CSSL_E_NO_MEMORY : 0;
	memcpy(*to, from->data, from->len);
	return 0;
}

/* @fd is taken over. */
static struct unclaimed *unclaimed_create(const Cssl__PassedBackend *m, int fd)
{
	struct unclaimed *u = calloc(1, sizeof *u);
	struct passed_backend *b = &u->backend;

	if (!u) {
		close(fd);
		return NULL;
	}
	b->fd = fd;
	memcpy(b->connection.bytes, m->connection_id.data, CONNECTION_ID_LEN);
	b->next_epoch = (uint16_t)m->next_epoch;
	snprintf(b->backend, sizeof b->backend, "%s", m->backend);
	b->from_state = m->backend_eof ? BACKEND_EOF : BACKEND_READING;
	b->to_state = m->backend_shut ? BACKEND_SHUT : BACKEND_WRITING;
	if (passed_copy_bytes(&m->to_backend, &b->to_backend, &b->to_backend_len) != 0 ||
		passed_copy_bytes(&m->from_backend, &b->from_backend, &b->from_backend_len) != 0 ||
		passed_copy_bytes(&m->service_state, &b->service_state, &b->service_state_len) != 0) {
		passed_backend_destroy(b);
		free(u);
		return NULL;
	}
	return u;
}

static int passed_keep(struct passed_backends *all, const Cssl__PassedBackend *m, int fd)
{
	struct unclaimed *u = fd >= 0 ? unclaimed_create(m, fd) : NULL;

	if (!u)
		return CSSL_E_NO_MEMORY;
	u->until_ms = cluster_now_ms() + CLAIM_WITHIN_MS;
	pthread_mutex_lock(&all->lock);
	bool is_kept = all->unclaimed_count < UNCLAIMED_MAX;
	if (is_kept) {
		LIST_INSERT_HEAD(&all->unclaimed, u, next);
		all->unclaimed_count++;
	}
	pthread_mutex_unlock(&all->lock);
	if (is_kept)
		return 0;
	passed_backend_destroy(&u->backend);
	free(u);
	return CSSL_E_FULL;
}

static int passed_receive(struct cluster *c, struct peer *from, const Cssl__PassedBackend *m)
{
	Cssl__PassedBackendTaken taken = { MESSAGE(passed_backend_taken), .connection_id = m->connection_id,
		.next_epoch = m->next_epoch };
	Cssl__PeerMessage answer = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_PASSED_BACKEND_TAKEN,
		.passed_backend_taken = &taken };

	if (m->connection_id.len != CONNECTION_ID_LEN || m->next_epoch == 0 || m->next_epoch > UINT16_MAX ||
		strlen(m->backend) >= sizeof(((struct passed_backend *)0)->backend))
		return CSSL_E_RANGE;
	taken.taken = from->link && passed_keep(&c->passed, m, peer_link_take_fd(from->link, m->inode)) == 0;
	if (taken.taken)
		count(COUNT_BACKENDS_TAKEN);
	peer_send(from, &answer);
	return 0;
}

int cluster_take_passed(struct cluster *c, const struct connection_id *id, uint16_t epoch, struct passed_backend *out)
{
	struct passed_backends *all = &c->passed;
	struct unclaimed *u;

	pthread_mutex_lock(&all->lock);
	LIST_FOREACH(u, &all->unclaimed, next)
	if (u->backend.next_epoch == epoch && memcmp(&u->backend.connection, id, sizeof *id) == 0)
		break;
	if (u) {
		LIST_REMOVE(u, next);
		all->unclaimed_count--;
	}
	pthread_mutex_unlock(&all->lock);
	if (!u)
		return CSSL_E_NOT_FOUND;
	*out = u->backend;
	free(u);
	return 0;
}

static void pass_end(struct pass *p, int result)
{
	LIST_REMOVE(p, next);
	pass_hand_back(p, result);
}

static int passed_answered(struct cluster *c, struct peer *from, const Cssl__PassedBackendTaken *m)
{
	if (m->connection_id.len != CONNECTION_ID_LEN)
		return CSSL_E_RANGE;
	for (struct pass *after, *p = LIST_FIRST(&c->passed.passes); p; p = after) {
		after = LIST_NEXT(p, next);
		if (p->target == from->index && p->backend.next_epoch == m->next_epoch &&
			memcmp(p->backend.connection.bytes, m->connection_id.data, CONNECTION_ID_LEN) == 0)
			pass_end(p, m->taken ? 0 : CSSL_E_STATE);
	}
	return 0;
}

void passed_backends_peer_lost(struct cluster *c, struct peer *peer)
{
	for (struct pass *after, *p = LIST_FIRST(&c->passed.passes); p; p = after) {
		after = LIST_NEXT(p, next);
		if (p->target == peer->index)
			pass_end(p, CSSL_E_STATE);
	}
}

/* Tell the other side to forget the backend: its descriptor would keep the socket open. */
static void pass_withdraw(const struct pass *p)
{
	Cssl__PassedBackendWithdrawn withdrawn = { MESSAGE(passed_backend_withdrawn),
		.connection_id = bytes_of(p->backend.connection.bytes, CONNECTION_ID_LEN),
		.next_epoch = p->backend.next_epoch };
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_PASSED_BACKEND_WITHDRAWN,
		.passed_backend_withdrawn = &withdrawn };

	peer_send(p->cluster->peers.at[p->target], &m);
}

static int passed_withdrawn(struct cluster *c, const Cssl__PassedBackendWithdrawn *m)
{
	struct passed_backend backend;
	struct connection_id id;

	if (m->connection_id.len != CONNECTION_ID_LEN || m->next_epoch > UINT16_MAX)
		return CSSL_E_RANGE;
	memcpy(id.bytes, m->connection_id.data, CONNECTION_ID_LEN);
	if (cluster_take_passed(c, &id, (uint16_t)m->next_epoch, &backend) == 0)
		passed_backend_destroy(&backend);
	return 0;
}

int passed_backends_on_message(struct cluster *c, struct peer *from, const Cssl__PeerMessage *m)
{
	switch (m->what_case) {
	case CSSL__PEER_MESSAGE__WHAT_PASSED_BACKEND: return passed_receive(c, from, m->passed_backend);
	case CSSL__PEER_MESSAGE__WHAT_PASSED_BACKEND_TAKEN: return passed_answered(c, from, m->passed_backend_taken);
	case CSSL__PEER_MESSAGE__WHAT_PASSED_BACKEND_WITHDRAWN: return passed_withdrawn(c, m->passed_backend_withdrawn);
	default: return 0;
	}
}

void passed_backends_tick(struct cluster *c, int64_t now_ms)
{
	struct passed_backends *all = &c->passed;
	struct unclaimed_list over = LIST_HEAD_INITIALIZER(over);

	for (struct pass *after, *p = LIST_FIRST(&all->passes); p; p = after) {
		after = LIST_NEXT(p, next);
		if (p->until_ms > now_ms)
			continue;
		pass_withdraw(p);
		pass_end(p, CSSL_E_EXPIRED);
	}
	pthread_mutex_lock(&all->lock);
	for (struct unclaimed *after, *u = LIST_FIRST(&all->unclaimed); u; u = after) {
		after = LIST_NEXT(u, next);
		if (u->until_ms > now_ms)
			continue;
		LIST_REMOVE(u, next);
		all->unclaimed_count--;
		LIST_INSERT_HEAD(&over, u, next);
	}
	pthread_mutex_unlock(&all->lock);
	unclaimed_drop(&over);
}
