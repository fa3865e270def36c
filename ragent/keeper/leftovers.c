/* leftovers.c: reads the descriptors from /proc/self/fd. It collects them first, because closing changes the folder. */
#include "ragent/keeper/leftovers.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/memory/array.h"
#include "net/process/daemon.h"
#include "net/report/log.h"
#include "net/socket/address.h"
#include "net/socket/capture.h"
#include "net/socket/tcp_counts.h"
#include "proto/error.h"
#include "ragent/keeper/slot_table.h"

#define UNREAD_MAX (4u * 1024u * 1024u) /* a receive buffer hardly grows larger */

struct numbers {
	int *at;
	size_t count, cap;
};

static int numbers_add(struct numbers *n, int number)
{
	int r = array_make_room(&n->at, &n->cap, n->count, sizeof *n->at);

	if (r == 0)
		n->at[n->count++] = number;
	return r;
}

static int list_descriptors(struct numbers *out, struct notes *n)
{
	DIR *d = opendir("/proc/self/fd");
	int r = d ? 0 : CSSL_E_SYSTEM;

	for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;) {
		int fd = atoi(e->d_name); /* "." and ".." give 0 */
		if (fd > STDERR_FILENO && fd != dirfd(d))
			r = numbers_add(out, fd);
		notes_beat_all(n);
	}
	if (d)
		closedir(d);
	return r;
}

static bool is_noted(const struct notes *n, int fd)
{
	for (uint32_t i = 0; i < notes_socket_count(n); i++)
		if (n->sockets[i].fd == fd)
			return notes_socket_listens(&n->sockets[i]);
	return false;
}

/* Neither a leftover nor a connection. */
static bool is_of_process(const struct notes *n, int fd)
{
	return is_noted(n, fd) || log_has(fd) || service_has(fd);
}

static bool is_tcp_connection(int fd)
{
	const int domain = notes_socket_option(fd, SO_DOMAIN);

	return (domain == AF_INET || domain == AF_INET6) && notes_socket_option(fd, SO_TYPE) == SOCK_STREAM &&
	       notes_socket_option(fd, SO_ACCEPTCONN) == 0;
}

/* Our own connections to agents count their SYN as a written byte, so none of them passes. */
static bool is_untouched(int fd)
{
	struct tcp_counts counts;

	return tcp_counts_get(fd, &counts) == 0 && counts.read == 0 && counts.written == 0;
}

static uint16_t local_port(int fd)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof a;

	return getsockname(fd, (struct sockaddr *)&a, &len) == 0 ? address_port((const struct sockaddr *)&a) : 0;
}

static bool is_of_client(const struct notes *n, int fd)
{
	const uint16_t port = local_port(fd);

	if (capture_is_transparent(fd)) /* of TPROXY, and with the port that it wanted */
		return true;
	for (uint32_t i = 0; i < notes_socket_count(n); i++)
		if (local_port(n->sockets[i].fd) == port)
			return true;
	return false;
}

static void reset_at_close(int fd)
{
	/* law 8: a FIN could pass for the end of an answer */
	const struct linger at_once = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static void end_by_reset(struct leftovers *l, const struct notes *n, int fd)
{
	l->clients_reset += is_of_client(n, fd) ? 1 : 0;
	l->reset++;
	reset_at_close(fd);
	close(fd);
}

/* The kernel has all that was written, and its FIN. It delivers them, unless unread bytes make the close a reset. */
static void close_delivered(int fd)
{
	recv(fd, NULL, UNREAD_MAX, MSG_DONTWAIT | MSG_TRUNC);
	close(fd);
}

/* --- the table --- */

/* The slots with valid contents, by cookie. The cookies stand here, too: to sort a million of them by what their slots
 * say would take longer than a process may go without a beat. */
struct named_slot {
	uint64_t cookie;
	struct table_slot *slot;
};

struct saved {
	struct named_slot *at;
	size_t count, cap;
};

static int by_cookie(const void *a, const void *b)
{
	const struct named_slot *x = a, *y = b;

	return x->cookie < y->cookie ? -1 : x->cookie > y->cookie;
}

/* Of two with the same cookie, the one that was being restored is the second. */
static int by_cookie_and_state(const void *a, const void *b)
{
	const struct named_slot *x = a, *y = b;
	const int order = by_cookie(a, b);

	return order ? order : table_slot_is_restored(x->slot) - table_slot_is_restored(y->slot);
}

static int add_saved(struct saved *out, struct table_slot *s)
{
	int r = array_make_room(&out->at, &out->cap, out->count, sizeof *out->at);

	if (r < 0)
		return r;
	s->fd = -1;
	out->at[out->count++] = (struct named_slot){ s->cookie, s };
	return 0;
}

/* A process that dies while it restores a connection leaves two slots of it, if its own one says all already. Both say
 * the same now. But the former one may stay for several lives, and must never be valid beside what the connection
 * becomes. If the process was killed, the restoring was not to blame, and is undone. */
static void take_one_of_each(struct saved *all, struct notes *n)
{
	const bool is_innocent = n->last_cause == DEATH_KILLED;
	size_t count = 0;

	for (size_t i = 0; i < all->count; i++) {
		const struct named_slot here = all->at[i];
		/* law 2: two valid slots would become two connections with one socket */
		const bool is_second = count && all->at[count - 1].cookie == here.cookie;
		if (is_second && is_innocent) {
			table_slot_to(here.slot, SLOT_VOID);
			continue;
		}
		if (is_second)
			table_slot_to(all->at[--count].slot, SLOT_VOID);
		if (is_innocent && table_slot_is_restored(here.slot))
			table_slot_unrestore(here.slot);
		all->at[count++] = here;
		notes_beat_all(n);
	}
	all->count = count;
}

static int list_saved_of(struct saved *out, struct notes *n, unsigned worker)
{
	struct slot_walk w = { 0 };
	struct table_slot *s;
	int r = 0;

	while (r == 0 && (s = slot_table_next(n->table, &w, worker)) != NULL) {
		if (table_slot_has_all(s) || table_slot_is_restored(s))
			r = add_saved(out, s);
		notes_beat_all(n);
	}
	return r;
}

#define NO_WORKER UINT32_MAX

static int list_saved_but(struct saved *out, struct notes *n, uint32_t not_of)
{
	int r = 0;

	for (unsigned worker = 0; r == 0 && worker + 1 < n->thread_count; worker++)
		if (worker != not_of)
			r = list_saved_of(out, n, worker);
	if (out->count)
		qsort(out->at, out->count, sizeof out->at[0], by_cookie_and_state);
	notes_beat_all(n);
	take_one_of_each(out, n);
	return r;
}

static struct table_slot *find_saved(const struct saved *saved, int fd)
{
	struct named_slot key = { 0 };
	socklen_t len = sizeof key.cookie;

	if (!saved->count || getsockopt(fd, SOL_SOCKET, SO_COOKIE, &key.cookie, &len) < 0)
		return NULL;
	const struct named_slot *found = bsearch(&key, saved->at, saved->count, sizeof key, by_cookie);
	return found ? found->slot : NULL;
}

/* Does the slot contain all that was ever read and written? Of a connection that is followed, the counts tell it
 * later. */
static bool says_all(const struct table_slot *s, int fd)
{
	struct tcp_counts counts;

	if (table_slot_has_trail(table_slot_state(s)))
		return true;
	return table_slot_has_all(s) && tcp_counts_get(fd, &counts) == 0 && counts.read == s->bytes_read &&
	       counts.written == s->bytes_written;
}

/* --- all of them --- */

/* An agent that sees the end of its link waits so long and no longer for the next process, which asks for its streams
 * when all clients are sorted. With very many that takes a while, so links end last. */
static void close_later(struct numbers *later, int fd)
{
	if (numbers_add(later, fd) < 0)
		close(fd);
}

static void sort_fresh(struct leftovers *l, const struct notes *n, struct numbers *later, int fd)
{
	if (tcp_has_ended(fd)) {
		close_delivered(fd);
	} else if (is_untouched(fd) &&
		   array_make_room(&l->fresh, &l->fresh_cap, l->fresh_count, sizeof *l->fresh) == 0) {
		l->fresh[l->fresh_count++] = fd;
	} else {
		l->clients_reset += is_of_client(n, fd) ? 1 : 0;
		l->reset++;
		reset_at_close(fd);
		close_later(later, fd);
	}
}

/* It was @s's. */
static void sort_saved(struct leftovers *l, const struct notes *n, struct table_slot *s, int fd)
{
	if (says_all(s, fd)) {
		s->fd = fd;
		l->saved++;
		return;
	}
	/* law 3: nobody knows what the client got, so nobody can go on behind it */
	if (table_slot_is_restored(s))
		l->given_up++;
	else
		l->outdated++;
	table_slot_to(s, SLOT_VOID);
	end_by_reset(l, n, fd);
}

/* No two sockets have the same cookie, so the cookie is asked first: most descriptors are those of saved connections.
 */
static void sort_one(
	struct leftovers *l, const struct notes *n, const struct saved *saved, struct numbers *later, int fd)
{
	struct table_slot *s = find_saved(saved, fd);

	if (s && s->fd < 0)
		sort_saved(l, n, s, fd);
	else if (!s && is_tcp_connection(fd))
		sort_fresh(l, n, later, fd);
	else /* or the second descriptor of a connection */
		close_later(later, fd);
}

/* At once, because this process may die before it serves. */
static void count_reset(const struct leftovers *l, struct fates *f)
{
	atomic_fetch_add(&f->reset, l->clients_reset);
	atomic_fetch_add(&f->given_up, l->given_up);
	atomic_fetch_add(&f->outdated, l->outdated);
}

int leftovers_sort(struct leftovers *l, struct notes *n)
{
	struct numbers all = { 0 }, later = { 0 };
	struct saved saved = { 0 };

	l->began_ns = notes_now_ns();
	int r = list_saved_but(&saved, n, NO_WORKER);
	if (r == 0)
		r = list_descriptors(&all, n);
	for (size_t i = 0; r == 0 && i < all.count; i++) {
		if (!is_of_process(n, all.at[i]))
			sort_one(l, n, &saved, &later, all.at[i]);
		notes_beat_all(n);
	}
	for (size_t i = 0; i < later.count; i++) {
		close(later.at[i]);
		notes_beat_all(n);
	}
	count_reset(l, &n->shared->fates);
	l->ended_ns = notes_now_ns();
	free(all.at);
	free(later.at);
	free(saved.at);
	return r;
}

void leftovers_free(struct leftovers *l)
{
	free(l->fresh);
	*l = (struct leftovers){ 0 };
}

/* A process that stopped has closed its listening sockets, so nothing tells clients from other peers any more. These
 * lose nothing: their connections end with this process. */
static bool is_to_end(const struct notes *n, const struct saved *own, int fd)
{
	if (is_of_process(n, fd) || !is_tcp_connection(fd))
		return false;
	return !own || find_saved(own, fd);
}

/* @own NULL: all of them. */
static void leftovers_reset_all(struct notes *n, const struct saved *own)
{
	struct leftovers l = { 0 };
	struct numbers all = { 0 };

	if (list_descriptors(&all, n) < 0)
		return;
	for (size_t i = 0; i < all.count; i++) {
		const int fd = all.at[i];
		notes_beat_all(n);
		if (!is_to_end(n, own, fd))
			continue;
		if (tcp_has_ended(fd))
			close_delivered(fd);
		else
			end_by_reset(&l, n, fd);
	}
	free(all.at);
}

void leftovers_end_all_blindly(struct notes *n)
{
	if (atomic_load(&n->shared->shared_worker) == 0)
		leftovers_reset_all(n, NULL);
}

void leftovers_end_all(struct notes *n)
{
	const uint32_t shared = atomic_load(&n->shared->shared_worker);
	struct saved own = { 0 };

	if (shared == 0)
		leftovers_reset_all(n, NULL);
	else if (list_saved_but(&own, n, shared - 1) == 0)
		leftovers_reset_all(n, &own);
	free(own.at);
}
