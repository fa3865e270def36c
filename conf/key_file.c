/* key_file.c: the open descriptor is checked, so the file that is read is the file that was checked. The text goes
 * through locked memory only. Messages never quote the file. */
#include "conf/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "conf/conf.h"
#include "proto/agents_key.h"
#include "proto/error.h"

#define KEY_TEXT_MAX 4096u

static const struct {
	mode_t forbidden;
	const char *expected, *remedy;
	const char *making;
} kinds[] = {
	[KEY_FILE_RING] = { 077, "mode 0600, for its owner alone", "chmod 600",
		"; to make one: (umask 077; echo \"k1 $(openssl rand -hex 32)\" > FILE)" },
	[KEY_FILE_WORD] = { 077, "mode 0600, for its owner alone", "chmod 600",
		"; to make one: (umask 077; cat > FILE)" },
	[KEY_FILE_PEM] = { 037, "mode 0600 or 0640, not for others", "chmod 600", "" },
	[KEY_FILE_PUBLIC] = { 0, "", "", "" },
};

static int key_file_check(int fd, const char *path, enum key_file_kind kind, char *why, size_t why_cap)
{
	struct stat st;
	if (fstat(fd, &st) != 0) {
		snprintf(why, why_cap, "found '%s', expected a file: %s", path, strerror(errno));
		return CSSL_E_CONFIG;
	}
	if (!S_ISREG(st.st_mode)) {
		snprintf(why, why_cap, "found '%s', expected a regular file%s", path, kinds[kind].making);
		return CSSL_E_CONFIG;
	}
	if (st.st_mode & kinds[kind].forbidden) {
		snprintf(why, why_cap, "found '%s' with mode %04o, expected %s: %s %s", path,
			(unsigned)(st.st_mode & 07777), kinds[kind].expected, kinds[kind].remedy, path);
		return CSSL_E_CONFIG;
	}
	return 0;
}

int key_file_open(const char *path, enum key_file_kind kind, char *why, size_t why_cap)
{
	/* Without O_NONBLOCK a FIFO in its place would hold up the start. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		snprintf(why, why_cap, "found '%s', expected a file that can be read: %s%s", path, strerror(errno),
			errno == EACCES
				? "; the user of this process needs the right to read it, and to enter its folders"
			: errno == ENOENT ? kinds[kind].making
					  : "");
		return CSSL_E_CONFIG;
	}
	int r = key_file_check(fd, path, kind, why, why_cap);
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

static int key_file_read_all(int fd, char *text, size_t cap, size_t *len)
{
	for (*len = 0; *len < cap;) {
		ssize_t n = read(fd, text + *len, cap - *len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return CSSL_E_SYSTEM;
		if (n == 0)
			return 0;
		*len += (size_t)n;
	}
	return CSSL_E_TOO_LONG;
}

static const char *ring_expected(int parsed)
{
	switch (parsed) {
	case CSSL_E_TYPE: return "an id of 1 to 16 letters, digits and _";
	case CSSL_E_RANGE: return "a key of 64 hexadecimal digits";
	case CSSL_E_FULL: return "at most 8 keys";
	case CSSL_E_MISMATCH: return "each id and each key only once";
	case CSSL_E_NOT_FOUND: return "a line `id key`";
	default: return "lines `id key`";
	}
}

static int read_ring(int fd, const char *path, char *text, struct key_ring *ring, char *error, size_t error_cap)
{
	size_t len;
	unsigned line = 0;
	int r = key_file_read_all(fd, text, KEY_TEXT_MAX, &len);
	if (r) {
		snprintf(error, error_cap, "%s: found %s, expected at most %u bytes", path,
			r == CSSL_E_TOO_LONG ? "a larger file" : "no end of it", KEY_TEXT_MAX - 1);
		return r;
	}
	r = key_ring_parse(text, len, ring, &line);
	if (r)
		snprintf(error, error_cap, "%s:%u: found something else (not shown: it may be a key), expected %s",
			path, line, ring_expected(r));
	return r;
}

struct key_ring *conf_read_key(const char *path, char *error, size_t error_cap)
{
	char *text = NULL;
	struct key_ring *ring = NULL;
	int r = CSSL_E_NO_MEMORY;
	int fd = key_file_open(path, KEY_FILE_RING, error, error_cap);
	if (fd < 0)
		return NULL;
	if (sodium_init() >= 0 && (text = sodium_malloc(KEY_TEXT_MAX)) && (ring = sodium_malloc(sizeof *ring)))
		r = read_ring(fd, path, text, ring, error, error_cap);
	else
		snprintf(error, error_cap, "%s: out of memory", path);
	close(fd);
	sodium_free(text);
	if (r) {
		sodium_free(ring);
		return NULL;
	}
	return ring;
}
