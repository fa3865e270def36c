/* test_log_file.c: facts of the files of logs. Those about root need root; others skip them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/report/log.h"
#include "net/report/log_file.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static char path[256];

static void set_path(void)
{
	snprintf(path, sizeof path, "%s/log", temp_dir());
	unlink(path);
}

static uid_t owner_of(const char *file)
{
	struct stat st;

	ck_assert_int_eq(lstat(file, &st), 0);
	return st.st_uid;
}

#define THEM 12345

/* A folder of that user with a name in it. */
static const char *make_theirs(const char *name)
{
	static char folder[300], in_it[320];

	snprintf(folder, sizeof folder, "%s/theirs", temp_dir());
	ck_assert(mkdir(folder, 0755) == 0 || errno == EEXIST);
	ck_assert_int_eq(chown(folder, THEM, THEM), 0);
	ck_assert_int_eq(chmod(temp_dir(), 0755), 0);
	snprintf(in_it, sizeof in_it, "%s/%s", folder, name);
	unlink(in_it);
	return in_it;
}

static void remove_theirs(const char *in_it)
{
	unlink(in_it);
	*strrchr((char *)in_it, '/') = '\0';
	ck_assert_int_eq(rmdir(in_it), 0);
}

static void make_file(char *out, size_t cap, const char *name)
{
	snprintf(out, cap, "%s/%s", temp_dir(), name);
	unlink(out);
	close(open(out, O_WRONLY | O_CREAT | O_EXCL, 0600));
}

START_TEST(root_gives_away_only_what_it_made)
{
	char found[300];

	if (geteuid() != 0)
		return;
	set_path();
	ck_assert_int_eq(log_open("x", "", LOG_TEXT, LOG_INFO, path), 0);
	ck_assert_int_eq(log_give(THEM, THEM), 0);
	ck_assert_uint_eq(owner_of(path), THEM);
	log_close();
	make_file(found, sizeof found, "found");
	ck_assert_int_eq(log_open("x", "", LOG_TEXT, LOG_INFO, found), 0);
	ck_assert_int_eq(log_give(THEM, THEM), 0);
	ck_assert_uint_eq(owner_of(found), 0);
	log_close();
}
END_TEST

/* The folder of a log belongs to an ordinary user, who may put anything there. */
START_TEST(root_follows_no_link_and_takes_no_second_name_that_another_user_may_have_chosen)
{
	char target[300];

	if (geteuid() != 0)
		return;
	const char *theirs = make_theirs("log");
	make_file(target, sizeof target, "precious");
	ck_assert_int_eq(symlink(target, theirs), 0);
	ck_assert_int_eq(log_open("x", "", LOG_TEXT, LOG_INFO, theirs), -ELOOP);
	ck_assert_int_eq(log_try_file(theirs), -ELOOP);
	unlink(theirs);
	ck_assert_int_eq(link(target, theirs), 0);
	ck_assert_int_eq(log_open("x", "", LOG_TEXT, LOG_INFO, theirs), -EMLINK);
	unlink(theirs);
	ck_assert_int_eq(log_try_file(theirs), -ENOENT);
	remove_theirs(theirs);
	set_path();
	ck_assert_int_eq(symlink(target, path), 0);
	ck_assert_int_eq(lchown(path, THEM, THEM), 0); /* in a folder of root */
	ck_assert_int_eq(log_try_file(path), -ELOOP);
	unlink(path);
	unlink(target);
}
END_TEST

/* /dev/stdout of a container, a link of the administrator, a backup by hard links. */
START_TEST(root_follows_its_own_links_in_its_own_folders)
{
	char target[300], second[300];

	if (geteuid() != 0)
		return;
	snprintf(path, sizeof path, "%s/log", temp_dir());
	snprintf(target, sizeof target, "%s/target", temp_dir());
	snprintf(second, sizeof second, "%s/second", temp_dir());
	unlink(path);
	unlink(second);
	ck_assert_int_eq(symlink(target, path), 0);
	ck_assert_int_eq(log_try_file(path), -ENOENT);
	ck_assert_int_eq(log_open("x", "", LOG_TEXT, LOG_INFO, path), 0);
	ck_assert_int_eq(link(target, second), 0);
	ck_assert_int_eq(log_try_file(target), 0);
	ck_assert_int_eq(log_reopen(), 0);
	log_close();
	ck_assert_int_eq(chmod(temp_dir(), 01777), 0);
	ck_assert_int_eq(log_try_file(path), -ELOOP);
	ck_assert_int_eq(log_try_file(target), -EMLINK);
	ck_assert_int_eq(chmod(temp_dir(), 0755), 0);
	unlink(path);
	unlink(second);
}
END_TEST

START_TEST(an_ordinary_user_makes_what_a_link_to_nothing_names)
{
	char target[300];
	struct stat st;

	if (geteuid() == 0) {
		snprintf(path, sizeof path, "%s", make_theirs("log"));
		ck_assert_int_eq(seteuid(THEM), 0);
	} else {
		set_path();
	}
	snprintf(target, sizeof target, "%s.1", path);
	ck_assert_int_eq(symlink("log.1", path), 0);
	ck_assert_int_eq(log_try_file(path), -ENOENT);
	ck_assert_int_eq(log_open("x", "", LOG_TEXT, LOG_INFO, path), 0);
	ck_assert_int_eq(unlink(target), 0); /* a rotation */
	ck_assert_int_eq(log_reopen(), 0);
	log_event(LOG_INFO, NULL, "after", NULL);
	ck_assert_int_eq(stat(target, &st), 0);
	ck_assert_int_gt(st.st_size, 0);
	log_close();
	unlink(path);
	unlink(target);
	ck_assert_int_eq(seteuid(getuid()), 0); /* a search for leaks needs it */
}
END_TEST

START_TEST(a_look_at_a_fifo_shows_its_reader_no_end)
{
	char byte;

	set_path();
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	const int reader = open(path, O_RDONLY | O_NONBLOCK);
	ck_assert_int_eq(log_try_file(path), 0);
	struct pollfd room = { .fd = reader, .events = POLLIN };
	ck_assert_int_eq(poll(&room, 1, 0), 0); /* no POLLHUP: nobody has written */
	ck_assert_int_eq(log_open("x", "", LOG_TEXT, LOG_INFO, path), 0);
	log_event(LOG_INFO, NULL, "x", NULL);
	ck_assert_int_eq(read(reader, &byte, 1), 1);
	log_close();
	close(reader);
	unlink(path);
}
END_TEST

UNIT(log_file)
{
	const TTest *facts[] = {
		root_gives_away_only_what_it_made,
		root_follows_no_link_and_takes_no_second_name_that_another_user_may_have_chosen,
		root_follows_its_own_links_in_its_own_folders,
		an_ordinary_user_makes_what_a_link_to_nothing_names,
		a_look_at_a_fifo_shows_its_reader_no_end,
	};
	return suite_run("log_file", facts, sizeof facts / sizeof facts[0]);
}
