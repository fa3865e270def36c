/* temp_dir.h: a folder of its own for each fact, and files in it. */
#pragma once

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char temp_dir[64];

static inline void temp_dir_make(void)
{
	strcpy(temp_dir, "/tmp/cssl-conf-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(temp_dir));
}

static inline int temp_dir_remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static inline void temp_dir_remove(void)
{
	nftw(temp_dir, temp_dir_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* The path of @name in it; a few can be held at a time. */
static inline const char *temp_path(const char *name)
{
	static char paths[4][128];
	static unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof paths[0], "%s/%s", temp_dir, name);
	return path;
}

static inline const char *temp_file(const char *name, const char *text, mode_t mode)
{
	const char *path = temp_path(name);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(chmod(path, mode), 0);
	return path;
}
