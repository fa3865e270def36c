/* test_ragent_again.c: facts of what a RAgent notes for the next one, and of a RAgent that begins with such notes after
 * a death. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/limits/admission.h"
#include "net/loop/timer.h"
#include "ragent/connection/connection_home.h"
#include "root_object.h"
#include "tests/unit/unit.h"

#define TABLE_LEN (4u << 20)

static struct leftovers leftovers;
static struct timer *timer;
static uint64_t limit_ms;

static void make_notes(void)
{
	params.notes = notes_create(3, 16);
	ck_assert_ptr_nonnull(params.notes);
	params.notes->table = slot_table_create(TABLE_LEN, connection_len());
	ck_assert_ptr_nonnull(params.notes->table);
}

static void free_notes(void)
{
	ragent_destroy(ragent);
	ragent = NULL;
	slot_table_destroy(params.notes->table);
	notes_destroy(params.notes);
	params.notes = NULL;
}

static uint32_t stage(void)
{
	return atomic_load(&params.notes->shared->stage);
}

static int serves(void)
{
	return stage() == NOTES_SERVING;
}

static int (*awaited)(void);

static void on_tick(void *ctx)
{
	if (!awaited() && now_ms() < limit_ms)
		return;
	timer_stop(timer);
	raise(SIGTERM);
}

/* The main loop turns until @state, and ends in order. */
static void runs_until(int (*state)(void))
{
	awaited = state;
	limit_ms = now_ms() + 3000;
	timer = timer_start(ragent->main, on_tick, NULL, 5, 5);
	ck_assert_int_eq(ragent_run(ragent), 0);
	ck_assert_uint_lt(now_ms(), limit_ms);
}

/* What is noted */

static unsigned noted(const char *beginning)
{
	const struct notes *n = params.notes;
	unsigned count = 0;

	for (uint32_t i = 0; i < notes_socket_count(n); i++) {
		ck_assert_int_eq(notes_socket_listens(&n->sockets[i]), 1);
		count += strncmp(n->sockets[i].key, beginning, strlen(beginning)) == 0;
	}
	return count;
}

START_TEST(each_listening_socket_is_noted_for_the_next_process)
{
	make_notes();
	starts("127.0.0.1:0", with_control());
	ck_assert_uint_eq(notes_socket_count(params.notes), 4);
	ck_assert_uint_eq(noted("listener sf 127.0.0.1:0"), 2); /* one of each worker */
	ck_assert_uint_eq(noted("control /"), 1);
	ck_assert_uint_eq(noted("handover /"), 1);
	ends();
	free_notes();
}
END_TEST

START_TEST(the_notes_tell_when_it_serves_and_when_it_ends)
{
	make_notes();
	starts("127.0.0.1:0", "workers: 1");
	ck_assert_uint_eq(stage(), NOTES_SERVING);
	ends();
	ck_assert_uint_eq(stage(), NOTES_ENDING);
	free_notes();
}
END_TEST

static int has_beaten(void)
{
	return atomic_load(&params.notes->beats[0]) > 0;
}

START_TEST(the_main_loop_shows_its_progress)
{
	make_notes();
	starts("127.0.0.1:0", "workers: 1");
	atomic_store(&params.notes->beats[0], 0);
	runs_until(has_beaten);
	free_notes();
}
END_TEST

static int knows_no_keeper(void)
{
	return atomic_load(&params.notes->shared->keeper) == 0;
}

START_TEST(it_serves_on_without_a_keeper_that_has_died)
{
	make_notes();
	starts("127.0.0.1:0", "workers: 1");
	atomic_store(&params.notes->shared->keeper, (uint32_t)getpid()); /* this is not its parent */
	runs_until(knows_no_keeper);
	free_notes();
}
END_TEST

/* After a death */

/* The process before had this socket. Returns it; the notes have its number, and @text its address. */
static int note_listener(char text[static ADDRESS_TEXT_MAX])
{
	struct sockaddr_storage at;
	char key[NOTES_KEY_MAX];
	const int fd = socket_listen(OVER_TCP4, &at);

	fcntl(fd, F_SETFL, O_NONBLOCK);
	address_format((const struct sockaddr *)&at, text);
	passed_key_of_listener(key, "sf", (const struct sockaddr *)&at);
	ck_assert_int_eq(notes_add_socket(params.notes, key, 0, fd), 0);
	params.start = RAGENT_STARTS_AGAIN;
	params.leftovers = &leftovers;
	return fd;
}

static int has_both_clients(void)
{
	return serves() && admission_total(ragent->shared.admission) == 2;
}

START_TEST(it_goes_on_with_the_sockets_and_the_clients_of_the_one_before)
{
	char text[ADDRESS_TEXT_MAX];
	int listening, waiting, accepted, fresh[1];

	make_notes();
	listening = note_listener(text);
	accepted = connect_to_text(text);
	fresh[0] = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	waiting = connect_to_text(text); /* nobody has accepted it */
	leftovers = (struct leftovers){ .fresh = fresh, .fresh_count = 1 };
	starts(text, "workers: 1");
	ck_assert_str_eq(bound_text(), text);
	ck_assert_uint_eq(notes_socket_count(params.notes), 1); /* it is not noted again */
	runs_until(has_both_clients);
	ck_assert_uint_eq(atomic_load(&params.notes->shared->fates.fresh), 1);
	close(accepted);
	close(waiting);
	free_notes();
}
END_TEST

START_TEST(it_serves_when_all_workers_have_restored_theirs_and_says_so_once)
{
	char text[ADDRESS_TEXT_MAX];
	int fd, client, fresh[1];

	make_notes();
	fd = fcntl(note_listener(text), F_DUPFD_CLOEXEC, 0);
	ck_assert_int_eq(notes_add_socket(params.notes, params.notes->sockets[0].key, 1, fd), 0);
	client = connect_to_text(text);
	fresh[0] = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	leftovers = (struct leftovers){ .fresh = fresh, .fresh_count = 1 };
	starts(text, "workers: 2");
	ck_assert_uint_eq(stage(), NOTES_RESTORING);
	ck_assert_uint_eq(ragent->restored, 0);
	runs_until(serves);
	ck_assert_uint_eq(ragent->restored, 2);
	ck_assert_uint_eq(atomic_load(&params.notes->shared->fates.fresh), 1);
	close(client);
	free_notes();
}
END_TEST

/* In a process of its own: what it had made is not taken down. */
static int fails_and_listens(const char *text)
{
	read_file(text, "workers: 1, control: /nonexistent/control.sock");
	if (ragent_create(&params, error, sizeof error) || !strstr(error, "/nonexistent/control.sock"))
		return 1;
	if (!notes_socket_listens(&params.notes->sockets[0]))
		return 2;
	return connect_to_text(text) < 0 ? 3 : 0;
}

START_TEST(a_start_that_fails_leaves_the_sockets_to_the_next_attempt)
{
	char text[ADDRESS_TEXT_MAX];
	int listening, status;
	pid_t pid;

	make_notes();
	listening = note_listener(text);
	pid = fork();
	if (pid == 0)
		_exit(fails_and_listens(text));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(WIFEXITED(status) ? WEXITSTATUS(status) : 256, 0);
	close(listening);
	free_notes();
}
END_TEST

UNIT(ragent_again)
{
	const TTest *const facts[] = {
		each_listening_socket_is_noted_for_the_next_process,
		the_notes_tell_when_it_serves_and_when_it_ends,
		the_main_loop_shows_its_progress,
		it_serves_on_without_a_keeper_that_has_died,
		it_goes_on_with_the_sockets_and_the_clients_of_the_one_before,
		it_serves_when_all_workers_have_restored_theirs_and_says_so_once,
		a_start_that_fails_leaves_the_sockets_to_the_next_attempt,
	};

	return root_object_suite_run("ragent_again", facts, FACTS_LEN(facts));
}
