/* result.c: a result in a file is its memory, behind a line that only the same program on such a machine writes. */
#include "bench/measure/result.h"

#include <errno.h>
#include <string.h>

#include "net/loop/worker.h"
#include "proto/error.h"

#define NS_PER_MS  1000000u
#define HEADER_MAX 128

static const char *result_header(const struct result_kind *kind, char out[static HEADER_MAX])
{
	snprintf(out, HEADER_MAX, "cssl-bench %s, a result of %s, %zu bytes in order %d\n", CSSL_VERSION, kind->command,
		kind->size, __BYTE_ORDER__);
	return out;
}

void result_add(const struct result_kind *kind, void *sum, const void *result)
{
	struct result_times *all = sum;
	const struct result_times *its = result;

	if (its->begin_ns && (!all->begin_ns || its->begin_ns < all->begin_ns))
		all->begin_ns = its->begin_ns;
	if (its->end_ns > all->end_ns)
		all->end_ns = its->end_ns;
	kind->add(sum, result);
}

int result_save(FILE *file, const struct result_kind *kind, void *result)
{
	const uint64_t epoch_ns = (uint64_t)worker_wall_ms() * NS_PER_MS - uv_hrtime();
	struct result_times *times = result;
	char line[HEADER_MAX];

	times->begin_ns += times->begin_ns ? epoch_ns : 0;
	times->end_ns += times->end_ns ? epoch_ns : 0;
	const bool wrote = fputs(result_header(kind, line), file) >= 0 && fwrite(result, kind->size, 1, file) == 1;
	return fclose(file) == 0 && wrote ? 0 : CSSL_E_SYSTEM;
}

int result_read(const char *path, const struct result_kind *kind, void *out)
{
	char line[HEADER_MAX], expected[HEADER_MAX];

	errno = 0;
	FILE *file = fopen(path, "re");
	const bool is_whole = file && fgets(line, sizeof line, file) &&
			      strcmp(line, result_header(kind, expected)) == 0 &&
			      fread(out, kind->size, 1, file) == 1 && getc(file) == EOF;
	if (file)
		fclose(file);
	return is_whole ? 0 : CSSL_E_SYSTEM;
}
