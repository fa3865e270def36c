/* merge.c: `cssl-bench merge`: adds up the results that https and smtp-source saved, as they add up those of their own
 * processes, and reports.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "bench/command/command.h"
#include "bench/command/option_table.h"
#include "bench/load/load_result.h"
#include "bench/mail/source_result.h"

static const struct result_kind *const kinds[] = { &load_result_kind, &source_result_kind };

static union {
	struct load_result https;
	struct source_result source;
} sum;

#define KINDS (sizeof kinds / sizeof kinds[0])

/* The kind of the result in that file, which is @wanted if that is known. NULL: it is none, and this has complained. */
static const struct result_kind *merge_read_one(const char *file, const struct result_kind *wanted, void *out)
{
	for (unsigned i = 0; i < KINDS; i++) {
		if ((!wanted || wanted == kinds[i]) && result_read(file, kinds[i], out) == 0)
			return kinds[i];
	}
	fprintf(stderr,
		"merge: %s: %s; expected a whole result of %s by cssl-bench %s: save it with this one (--save)\n", file,
		errno ? strerror(errno) : "something else", wanted ? wanted->command : "https or smtp-source",
		CSSL_VERSION);
	return NULL;
}

static int merge_files(char **files, unsigned count, unsigned output)
{
	const struct result_kind *kind = NULL;
	char *each = calloc(count, sizeof sum), *next = each;
	unsigned done = 0;

	while (each && done < count && (kind = merge_read_one(files[done], kind, next))) {
		result_add(kind, &sum, next);
		next += kind->size;
		done++;
	}
	const int status = each && done == count ? kind->report(&sum, each, count, output) : EXIT_FAILURE;
	free(each);
	return status;
}

static const struct option_row rows[] = {
	{ 0, "json", NULL, "the sum as JSON", option_set_flag, 0, 0, 0, RESULT_JSON },
};

static const struct option_command command = { "merge",
	"cssl-bench merge [--json] FILE...: adds up what https or smtp-source saved (--save) on several hosts, or in "
	"several runs.\nThe sum is exact, percentiles included. Its time is from the first start to the last end by "
	"the "
	"clocks of the hosts.\n\n",
	"\nExit status: 0; 1: something failed in a run, or a file has no result; 2: bad options.\n", rows, 1,
	OPTIONS_AND_WORDS };

int merge_main(int argc, char **argv)
{
	unsigned output = RESULT_TEXT;
	const enum option_parse parsed = option_table_parse(&command, argc, argv, &output);

	if (parsed != OPTIONS_PARSED)
		return parsed;
	if (optind < argc)
		return merge_files(argv + optind, (unsigned)(argc - optind), output);
	fputs("merge: a FILE is needed\n", stderr);
	return OPTIONS_BAD;
}
