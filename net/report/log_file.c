/* log_file.c: opening and shortening the files that lines go to. */
#include "net/report/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_FLAGS (O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* Root may write in the folder of an ordinary user, who then must not choose the file by a link or a second name. As
 * for fs.protected_symlinks, a name that only root can have made is good. */
static bool may_be_chosen_by_others(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];
	struct stat link, of_folder;

	snprintf(folder, sizeof folder, "%.*s/", slash ? (int)(slash - path) : 1, slash ? path : ".");
	return geteuid() == 0 &&
	       (stat(folder, &of_folder) < 0 || of_folder.st_uid != 0 || of_folder.st_mode & S_IWOTH ||
		       (lstat(path, &link) == 0 && S_ISLNK(link.st_mode) && link.st_uid != 0));
}

/* @how: O_CREAT or 0. */
static int file_open_found(const char *path, int how)
{
	const bool is_doubtful = may_be_chosen_by_others(path);
	const int fd = open(path, OPEN_FLAGS | (is_doubtful ? O_NOFOLLOW : how), 0640);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!is_doubtful || (fstat(fd, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_nlink == 1)))
		return fd;
	close(fd);
	return -EMLINK;
}

int log_open_file(const char *path, enum log_origin *origin)
{
	const int is_root = geteuid() == 0, fd = is_root ? open(path, OPEN_FLAGS | O_CREAT | O_EXCL, 0640) : -1;

	*origin = fd < 0 ? LOG_FILE_FOUND : LOG_FILE_MADE;
	if (fd < 0 && (!is_root || errno == EEXIST))
		return file_open_found(path, O_CREAT);
	return fd < 0 ? -errno : fd;
}

int log_try_file(const char *path)
{
	struct stat st;
	const int r = may_be_chosen_by_others(path) ? lstat(path, &st) : stat(path, &st);

	/* the reader of a FIFO would see the end of its data */
	if (r == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
		return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0 ? -errno : 0;
	const int fd = file_open_found(path, 0);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

bool log_take_back(int fd, size_t len)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && lseek(fd, 0, SEEK_CUR) == st.st_size &&
	       ftruncate(fd, st.st_size - (off_t)len) == 0;
}
