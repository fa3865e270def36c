/* test_listener_file.c: facts of the files of UNIX sockets. The one about giving them away needs root. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/loop/listener.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct sockaddr_un address = { .sun_family = AF_UNIX };

static const char *path_of(const char *name)
{
	static char text[2][256];
	static unsigned turn;
	char *out = text[++turn % 2];

	snprintf(out, sizeof text[0], "%s/%s", temp_dir(), name);
	unlink(out);
	return out;
}

static const char *make_socket(void)
{
	strcpy(address.sun_path, path_of("socket"));
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	close(fd);
	return address.sun_path;
}

static uid_t owner_of(const char *path)
{
	struct stat st;

	ck_assert_int_eq(lstat(path, &st), 0);
	return st.st_uid;
}

START_TEST(its_own_file_is_removed_and_no_other)
{
	struct listener_file mine, nothing = { 0 };
	const char *path = make_socket();

	listener_note_file(&mine, path);
	ck_assert_int_eq(listener_remove_file(&nothing, path), 0);
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_int_eq(rename(path, path_of("moved")), 0); /* so that the number is not used again */
	make_socket();
	ck_assert_int_eq(listener_remove_file(&mine, path), 0);
	ck_assert_int_eq(access(path, F_OK), 0);
	listener_note_file(&mine, path);
	ck_assert_int_eq(listener_remove_file(&mine, path), 0);
	ck_assert_int_ne(access(path, F_OK), 0);
	listener_note_file(&mine, path);
	ck_assert_uint_eq(mine.inode, 0);
}
END_TEST

START_TEST(only_a_socket_of_its_own_with_one_name_is_given_away)
{
	const char *path = make_socket(), *other = path_of("other");

	if (geteuid() != 0)
		return;
	ck_assert_int_eq(symlink(path, other), 0);
	ck_assert_int_eq(listener_give_file(other, 12345, 12345), -ENOTSOCK);
	unlink(other);
	ck_assert_int_eq(link(path, other), 0);
	ck_assert_int_eq(listener_give_file(path, 12345, 12345), -ENOTSOCK);
	unlink(other);
	ck_assert_uint_eq(owner_of(path), 0);
	ck_assert_int_eq(listener_give_file(path, 12345, (gid_t)-1), 0);
	ck_assert_uint_eq(owner_of(path), 12345);
	ck_assert_int_eq(listener_give_file(path, 54321, 12345), -ENOTSOCK);
	ck_assert_int_eq(listener_give_file(path_of("nothing"), 12345, 12345), -ENOENT);
}
END_TEST

UNIT(listener_file)
{
	const TTest *facts[] = {
		its_own_file_is_removed_and_no_other,
		only_a_socket_of_its_own_with_one_name_is_given_away,
	};
	return suite_run("listener_file", facts, sizeof facts / sizeof facts[0]);
}
