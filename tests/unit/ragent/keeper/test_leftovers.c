/* test_leftovers.c: facts of which descriptors of a dead process go on. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/process/daemon.h"
#include "ragent/keeper/leftovers.h"
#include "ragent/keeper/slot_table.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct notes *notes;
static int listening, client, accepted;

static void make_connection(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;

	notes = notes_create(2, 1);
	listening = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(listening, (struct sockaddr *)&a, sizeof a), 0);
	ck_assert_int_eq(listen(listening, 4), 0);
	ck_assert_int_eq(getsockname(listening, (struct sockaddr *)&a, &len), 0);
	ck_assert_int_eq(notes_add_socket(notes, "listener", 0, listening), 0);
	client = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(client, (struct sockaddr *)&a, sizeof a), 0);
	accepted = accept(listening, NULL, NULL);
	ck_assert_int_gt(accepted, 0);
}

static int is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* The test's own end of the connection is no leftover: it is kept away meanwhile, as if in another process. */
static void sort_without_client(struct leftovers *l)
{
	pid_t holder = fork();

	if (holder == 0) {
		pause();
		_exit(0);
	}
	close(client);
	ck_assert_int_eq(leftovers_sort(l, notes), 0);
	kill(holder, SIGKILL);
}

START_TEST(a_noted_listening_socket_stays_open)
{
	struct leftovers l = { 0 };

	sort_without_client(&l);
	ck_assert(is_open(listening));
	leftovers_free(&l);
}
END_TEST

START_TEST(a_client_that_was_only_accepted_is_kept)
{
	struct leftovers l = { 0 };

	ck_assert_int_eq(send(client, "hello", 5, 0), 5);
	sort_without_client(&l);
	ck_assert_uint_eq(l.fresh_count, 1);
	ck_assert_int_eq(l.fresh[0], accepted);
	ck_assert_uint_eq(l.reset, 0);
	leftovers_free(&l);
}
END_TEST

START_TEST(a_client_of_which_a_byte_was_read_is_reset)
{
	struct leftovers l = { 0 };
	char byte;

	ck_assert_int_eq(send(client, "hello", 5, 0), 5);
	ck_assert_int_eq(recv(accepted, &byte, 1, MSG_WAITALL), 1);
	sort_without_client(&l);
	ck_assert_uint_eq(l.fresh_count, 0);
	ck_assert_uint_eq(l.reset, 1);
	ck_assert(!is_open(accepted));
	leftovers_free(&l);
}
END_TEST

START_TEST(a_client_to_which_a_byte_was_written_is_reset)
{
	struct leftovers l = { 0 };

	ck_assert_int_eq(send(accepted, "x", 1, 0), 1);
	sort_without_client(&l);
	ck_assert_uint_eq(l.reset, 1);
	leftovers_free(&l);
}
END_TEST

/* 3: all of @len bytes came, and then FIN. */
static int read_to_fin(size_t len)
{
	static char bytes[65536];
	size_t got = 0;
	ssize_t n;

	while ((n = recv(client, bytes, sizeof bytes, 0)) > 0)
		got += (size_t)n;
	return n == 0 && got == len ? 3 : 4;
}

/* At SIGUSR1, in a process that has only the client's end. */
static pid_t read_at_the_signal(size_t len)
{
	sigset_t go;
	int signum;

	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	sigprocmask(SIG_BLOCK, &go, NULL);
	pid_t reader = fork();
	if (reader == 0) {
		close(accepted);
		sigwait(&go, &signum);
		_exit(read_to_fin(len));
	}
	close(client);
	return reader;
}

/* As much as the kernel takes, so that most of it has not left yet. */
static size_t fill_accepted(void)
{
	static const char bytes[65536];
	size_t sent = 0;
	ssize_t n;

	while ((n = send(accepted, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
		sent += (size_t)n;
	return sent;
}

/* The process before has said all, and FIN. A reset would take from the client what it has not read, also where the
 * client sent a byte that nobody read. */
START_TEST(a_client_that_was_told_the_end_gets_all)
{
	ck_assert_int_eq(send(client, "y", 1, 0), 1);
	const pid_t reader = read_at_the_signal(fill_accepted());
	struct leftovers l = { 0 };
	int status;

	ck_assert_int_eq(shutdown(accepted, SHUT_WR), 0);
	ck_assert_int_eq(leftovers_sort(&l, notes), 0);
	ck_assert_uint_eq(l.reset, 0);
	ck_assert(!is_open(accepted));
	kill(reader, SIGUSR1);
	ck_assert_int_eq(waitpid(reader, &status, 0), reader);
	ck_assert_int_eq(WEXITSTATUS(status), 3);
	leftovers_free(&l);
}
END_TEST

START_TEST(a_connection_that_the_process_itself_made_is_reset)
{
	struct leftovers l = { 0 };

	close(accepted);
	ck_assert_int_eq(leftovers_sort(&l, notes), 0);
	ck_assert_uint_eq(l.reset, 1);
	ck_assert(!is_open(client));
	leftovers_free(&l);
}
END_TEST

START_TEST(a_noted_number_that_is_another_socket_now_is_no_listening_socket)
{
	struct leftovers l = { 0 };

	ck_assert_int_eq(dup2(accepted, listening), listening);
	close(accepted);
	sort_without_client(&l);
	ck_assert_uint_eq(l.fresh_count, 1);
	ck_assert_int_eq(l.fresh[0], listening);
	leftovers_free(&l);
}
END_TEST

static struct slabs connections;

/* As a process of a former life that had read and written so many bytes. */
static struct table_slot *save(uint64_t bytes_read, uint64_t bytes_written)
{
	static struct table_share share;
	socklen_t len = sizeof(uint64_t);

	notes->table = slot_table_create(8 * SLAB_LEN, sizeof(struct table_slot));
	ck_assert_ptr_nonnull(notes->table);
	slot_table_share_init(&share, notes->table, TABLE_CONNECTIONS, 0);
	slabs_init_from(&connections, sizeof(struct table_slot), &share.source);
	struct table_slot *s = slabs_take(&connections);
	*s = (struct table_slot){ .bytes_read = bytes_read, .bytes_written = bytes_written, .fd = -1 };
	ck_assert_int_eq(getsockopt(accepted, SOL_SOCKET, SO_COOKIE, &s->cookie, &len), 0);
	table_slot_to(s, SLOT_SAVED);
	slot_table_begin_life(notes->table, 1);
	return s;
}

static void talk(void)
{
	char bytes[8];

	ck_assert_int_eq(send(client, "hello, you", 10, 0), 10);
	ck_assert_int_eq(recv(accepted, bytes, 5, MSG_WAITALL), 5);
	ck_assert_int_eq(send(accepted, "yes", 3, 0), 3);
}

START_TEST(a_saved_connection_goes_on_with_what_waits_unread)
{
	struct leftovers l = { 0 };

	talk();
	struct table_slot *s = save(5, 3);
	sort_without_client(&l);
	ck_assert_uint_eq(l.saved, 1);
	ck_assert_int_eq(s->fd, accepted);
	ck_assert(is_open(accepted));
}
END_TEST

START_TEST(a_saved_connection_with_a_second_descriptor_goes_on_with_one_of_them)
{
	struct leftovers l = { 0 };

	talk();
	struct table_slot *s = save(5, 3);
	int second = dup(accepted);
	sort_without_client(&l);
	ck_assert_uint_eq(l.saved, 1);
	ck_assert_uint_eq(l.reset, 0);
	ck_assert_int_eq(is_open(accepted) + is_open(second), 1);
	ck_assert(is_open(s->fd));
}
END_TEST

START_TEST(a_connection_that_was_read_since_it_was_saved_is_reset)
{
	struct leftovers l = { 0 };

	talk();
	struct table_slot *s = save(4, 3);
	sort_without_client(&l);
	ck_assert_uint_eq(l.saved, 0);
	ck_assert_uint_eq(l.reset, 1);
	ck_assert_uint_eq(l.outdated, 1);
	ck_assert_int_lt(s->fd, 0);
}
END_TEST

START_TEST(a_connection_that_was_written_since_it_was_saved_is_reset)
{
	struct leftovers l = { 0 };

	talk();
	save(5, 2);
	sort_without_client(&l);
	ck_assert_uint_eq(l.reset, 1);
	ck_assert_uint_eq(l.outdated, 1);
}
END_TEST

START_TEST(what_a_void_slot_says_counts_for_nothing)
{
	struct leftovers l = { 0 };

	talk();
	table_slot_to(save(5, 3), SLOT_VOID);
	sort_without_client(&l);
	ck_assert_uint_eq(l.saved, 0);
	ck_assert_uint_eq(l.reset, 1);
	ck_assert_uint_eq(l.outdated, 0);
}
END_TEST

START_TEST(a_connection_whose_restoring_ended_a_process_is_reset_and_counted)
{
	struct leftovers l = { 0 };

	talk();
	struct table_slot *s = save(5, 3);
	table_slot_restore(s);
	notes->last_cause = DEATH_CRASHED;
	sort_without_client(&l);
	ck_assert_uint_eq(l.saved, 0);
	ck_assert_uint_eq(l.reset, 1);
	ck_assert_uint_eq(l.given_up, 1);
	ck_assert(!is_open(accepted));
}
END_TEST

static void kill_while_it_restores(enum slot_state was)
{
	struct leftovers l = { 0 };

	talk();
	struct table_slot *s = save(5, 3);
	table_slot_to(s, was);
	table_slot_restore(s);
	notes->last_cause = DEATH_KILLED;
	sort_without_client(&l);
	ck_assert_uint_eq(l.saved, 1);
	ck_assert_uint_eq(l.reset + l.given_up, 0);
	ck_assert_int_eq(table_slot_state(s), was);
	ck_assert_int_eq(s->fd, accepted);
}

START_TEST(a_quiet_connection_goes_on_when_the_process_that_restored_it_was_killed)
{
	kill_while_it_restores(SLOT_SAVED);
}
END_TEST

START_TEST(a_busy_connection_goes_on_when_the_process_that_restored_it_was_killed)
{
	kill_while_it_restores(SLOT_FOLLOWED);
}
END_TEST

/* The process had made its own connection of @s, and @s was not free yet. */
static struct table_slot *copy_of(struct table_slot *s)
{
	struct table_slot *copy = slabs_take(&connections);

	*copy = *s;
	table_slot_restore(s);
	return copy;
}

START_TEST(of_two_slots_of_one_connection_only_the_later_one_is_valid)
{
	struct leftovers l = { 0 };

	talk();
	struct table_slot *former = save(5, 3), *later = copy_of(former);
	notes->last_cause = DEATH_KILLED;
	sort_without_client(&l);
	ck_assert_uint_eq(l.saved, 1);
	ck_assert_int_eq(later->fd, accepted);
	ck_assert_int_eq(table_slot_state(later), SLOT_SAVED);
	ck_assert_int_eq(table_slot_state(former), SLOT_VOID);
}
END_TEST

START_TEST(after_a_crash_none_of_the_two_slots_is_valid)
{
	struct leftovers l = { 0 };

	talk();
	struct table_slot *former = save(5, 3), *later = copy_of(former);
	notes->last_cause = DEATH_CRASHED;
	sort_without_client(&l);
	ck_assert_uint_eq(l.saved, 0);
	ck_assert_uint_eq(l.given_up, 1);
	ck_assert_int_eq(table_slot_state(later), SLOT_VOID);
	ck_assert_int_eq(table_slot_state(former), SLOT_VOID);
}
END_TEST

/* --- when no process follows --- */

static int resets_at_close(int fd)
{
	struct linger linger = { 0 };
	socklen_t len = sizeof linger;

	ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len), 0);
	return linger.l_onoff;
}

/* What another process sees of the accepted socket, which it has, too: 1, or 0: it is as it was. */
static int end_beside_another_process(void (*end)(struct notes *n))
{
	int go[2], status;

	ck_assert_int_eq(pipe(go), 0);
	pid_t other = fork();
	if (other == 0) {
		char byte;
		close(go[1]);
		_exit(read(go[0], &byte, 1) == 0 ? resets_at_close(accepted) : 9);
	}
	end(notes);
	close(go[1]);
	ck_assert_int_eq(waitpid(other, &status, 0), other);
	return WEXITSTATUS(status);
}

static int end_all_beside_another_process(void)
{
	return end_beside_another_process(leftovers_end_all);
}

START_TEST(when_nothing_is_shared_all_clients_are_reset)
{
	ck_assert_int_eq(end_all_beside_another_process(), 1);
	ck_assert(!is_open(accepted));
}
END_TEST

START_TEST(saved_clients_of_other_workers_than_the_shared_one_are_reset)
{
	talk();
	save(5, 3);
	notes_share(notes, 1);
	ck_assert_int_eq(end_all_beside_another_process(), 1);
}
END_TEST

START_TEST(saved_clients_of_the_shared_worker_stay_as_they_are)
{
	talk();
	save(5, 3);
	notes_share(notes, 0);
	ck_assert_int_eq(end_all_beside_another_process(), 0);
}
END_TEST

START_TEST(clients_that_are_not_saved_yet_may_be_the_other_process_s)
{
	notes_share(notes, 1);
	ck_assert_int_eq(end_all_beside_another_process(), 0);
}
END_TEST

START_TEST(without_a_look_at_the_table_all_clients_are_reset_when_nothing_is_shared)
{
	talk();
	save(5, 3);
	notes->table = (struct slot_table *)1; /* not to be read */
	ck_assert_int_eq(end_beside_another_process(leftovers_end_all_blindly), 1);
	ck_assert(!is_open(accepted));
}
END_TEST

START_TEST(without_a_look_at_the_table_nothing_is_touched_while_a_worker_is_shared)
{
	notes_share(notes, 1);
	ck_assert_int_eq(end_beside_another_process(leftovers_end_all_blindly), 0);
	ck_assert(is_open(accepted));
}
END_TEST

START_TEST(the_keeper_sees_that_sorting_goes_on)
{
	struct leftovers l = { 0 };

	sort_without_client(&l);
	for (unsigned i = 0; i < notes->thread_count; i++)
		ck_assert_uint_gt(notes->beats[i], 0);
	leftovers_free(&l);
}
END_TEST

#define BETWEEN 800

/* At the end of its link, the agent looks whether the saved connection has been found. The link has a lower number than
 * that connection, and there are many descriptors between them. */
START_TEST(links_end_when_all_connections_are_sorted)
{
	struct leftovers l = { 0 };
	int link[2], status;

	talk();
	struct table_slot *s = save(5, 3);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, link), 0);
	for (unsigned i = 0; i < BETWEEN; i++)
		ck_assert_int_ge(open("/dev/null", O_RDONLY), 0);
	ck_assert_int_gt(fcntl(accepted, F_DUPFD, link[0] + BETWEEN), link[0]);
	pid_t agent = fork();
	if (agent == 0) {
		char byte;
		close(link[0]);
		_exit(read(link[1], &byte, 1) == 0 && s->fd >= 0 ? 3 : 4);
	}
	close(accepted);
	close(client); /* the agent's process has it, too */
	close(link[1]);
	ck_assert_int_eq(leftovers_sort(&l, notes), 0);
	ck_assert_uint_eq(l.saved, 1);
	ck_assert_int_eq(waitpid(agent, &status, 0), agent);
	ck_assert_int_eq(WEXITSTATUS(status), 3);
}
END_TEST

/* Its socket, at an abstract name of the kernel's choice. */
static int make_service_manager(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int manager = socket(AF_UNIX, SOCK_DGRAM, 0);
	socklen_t len = sizeof a;
	char name[64];

	ck_assert_int_eq(bind(manager, (struct sockaddr *)&a, sizeof(sa_family_t)), 0);
	ck_assert_int_eq(getsockname(manager, (struct sockaddr *)&a, &len), 0);
	snprintf(name, sizeof name, "@%.*s", (int)(len - sizeof(sa_family_t) - 1), a.sun_path + 1);
	ck_assert_int_eq(setenv("NOTIFY_SOCKET", name, 1), 0);
	return manager;
}

/* The keeper sends on it meanwhile. Were it closed, its number could be another descriptor of the next process. */
START_TEST(the_socket_to_the_service_manager_stays_open)
{
	struct leftovers l = { 0 };
	int manager = make_service_manager(), kept = manager;

	service_keep_socket();
	while (!service_has(kept) && kept < manager + 8)
		kept++;
	ck_assert(service_has(kept));
	sort_without_client(&l);
	ck_assert(!is_open(manager) && is_open(kept));
	leftovers_free(&l);
}
END_TEST

START_TEST(a_sign_of_life_needs_no_other_descriptor)
{
	int manager = make_service_manager();
	char bytes[64];
	struct rlimit before;

	service_keep_socket();
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 3, before.rlim_max }), 0);
	service_notify_alive();
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0); /* a sanitizer needs some at the end */
	ck_assert_int_eq(recv(manager, bytes, sizeof bytes, MSG_DONTWAIT), (int)strlen("WATCHDOG=1\n"));
}
END_TEST

START_TEST(everything_else_is_closed)
{
	struct leftovers l = { 0 };
	int ends[2], file = open("/dev/null", O_RDONLY);

	ck_assert_int_eq(pipe(ends), 0);
	sort_without_client(&l);
	ck_assert(!is_open(file) && !is_open(ends[0]) && !is_open(ends[1]));
	leftovers_free(&l);
}
END_TEST

UNIT(leftovers)
{
	const TTest *const facts[] = {
		a_noted_listening_socket_stays_open,
		a_client_that_was_only_accepted_is_kept,
		a_client_of_which_a_byte_was_read_is_reset,
		a_client_to_which_a_byte_was_written_is_reset,
		a_client_that_was_told_the_end_gets_all,
		a_connection_that_the_process_itself_made_is_reset,
		a_noted_number_that_is_another_socket_now_is_no_listening_socket,
		a_saved_connection_goes_on_with_what_waits_unread,
		a_saved_connection_with_a_second_descriptor_goes_on_with_one_of_them,
		a_connection_that_was_read_since_it_was_saved_is_reset,
		a_connection_that_was_written_since_it_was_saved_is_reset,
		what_a_void_slot_says_counts_for_nothing,
		a_connection_whose_restoring_ended_a_process_is_reset_and_counted,
		a_quiet_connection_goes_on_when_the_process_that_restored_it_was_killed,
		a_busy_connection_goes_on_when_the_process_that_restored_it_was_killed,
		of_two_slots_of_one_connection_only_the_later_one_is_valid,
		after_a_crash_none_of_the_two_slots_is_valid,
		when_nothing_is_shared_all_clients_are_reset,
		saved_clients_of_other_workers_than_the_shared_one_are_reset,
		saved_clients_of_the_shared_worker_stay_as_they_are,
		clients_that_are_not_saved_yet_may_be_the_other_process_s,
		without_a_look_at_the_table_all_clients_are_reset_when_nothing_is_shared,
		without_a_look_at_the_table_nothing_is_touched_while_a_worker_is_shared,
		the_keeper_sees_that_sorting_goes_on,
		links_end_when_all_connections_are_sorted,
		the_socket_to_the_service_manager_stays_open,
		a_sign_of_life_needs_no_other_descriptor,
		everything_else_is_closed,
	};

	return suite_run_with("leftovers", make_connection, facts, sizeof facts / sizeof facts[0]);
}
