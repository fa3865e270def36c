/* driver.c: runs a fuzzer without libFuzzer: each file of each directory (or each file) named as an argument once, in
 * memory of exactly its size, so that memory checkers see a read behind its end. No seed at all is a failure. */
#include <dirent.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len);

static void run_file(const char *path, size_t len)
{
	FILE *file = fopen(path, "rb");
	uint8_t *in = malloc(len ? len : 1);
	if (!file || !in || fread(in, 1, len, file) != len)
		err(EXIT_FAILURE, "%s", path);
	fclose(file);

	/* Before the run: a seed that crashes is then named by the last line. */
	printf("%s: %zu bytes\n", path, len);
	fflush(stdout);
	LLVMFuzzerTestOneInput(in, len);
	free(in);
}

static unsigned run_path(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		err(EXIT_FAILURE, "%s", path);
	if (!S_ISREG(st.st_mode))
		return 0;
	run_file(path, (size_t)st.st_size);
	return 1;
}

static unsigned run_directory(DIR *directory, const char *name)
{
	unsigned count = 0;
	struct dirent *entry;
	while ((entry = readdir(directory))) {
		char *path;
		if (asprintf(&path, "%s/%s", name, entry->d_name) < 0)
			err(EXIT_FAILURE, "%s", name);
		count += run_path(path);
		free(path);
	}
	closedir(directory);
	return count;
}

int main(int argc, char **argv)
{
	unsigned count = 0;
	for (int i = 1; i < argc; i++) {
		DIR *directory = opendir(argv[i]);
		count += directory ? run_directory(directory, argv[i]) : run_path(argv[i]);
	}
	if (count == 0)
		errx(EXIT_FAILURE, "no seeds");
	return EXIT_SUCCESS;
}
