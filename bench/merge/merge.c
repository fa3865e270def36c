/* merge.c: `cssl-bench merge`: reads the results that https and smtp-source wrote as JSON on several hosts, adds them
 * up as they add up those of their own processes, and reports.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/command/command.h"
#include "bench/command/option_table.h"
#include "bench/load/load_report.h"
#include "bench/mail/source_result.h"

/* A kind of result. Results are plain memory, all zero at first. */
struct merge_kind {
	const char *load; /* as the JSON calls it */
	size_t size;
	int (*read)(const json_t *from, void *out);
	void (*add)(void *sum, const void *result);
	/* Returns an exit status. */
	int (*report)(const void *sum, const void *each, unsigned count, unsigned output);
};

enum merge_output { MERGE_TEXT, MERGE_JSON };

struct merge_options {
	unsigned output; /* enum merge_output */
};

static int read_https(const json_t *from, void *out)
{
	return load_report_read(from, out);
}

static void add_https(void *sum, const void *result)
{
	load_result_add(sum, result);
}

static int report_https(const void *sum, const void *each, unsigned count, unsigned output)
{
	if (output == MERGE_TEXT)
		load_report_text(sum, each, count);
	else if (load_report_json(sum, each, count))
		return EXIT_FAILURE;
	return load_result_has_failures(sum) ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int read_source(const json_t *from, void *out)
{
	return source_result_read(from, out);
}

static void add_source(void *sum, const void *result)
{
	source_result_add(sum, result);
}

static int report_source(const void *sum, const void *each, unsigned count, unsigned output)
{
	if (output == MERGE_TEXT)
		source_result_text(sum);
	else if (source_result_json(sum))
		return EXIT_FAILURE;
	return source_result_has_failures(sum) ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct merge_kind kinds[] = {
	{ "https", sizeof(struct load_result), read_https, add_https, report_https },
	{ "smtp-source", sizeof(struct source_result), read_source, add_source, report_source },
};

#define KINDS (sizeof kinds / sizeof kinds[0])

static const struct merge_kind *kind_of(const json_t *result)
{
	const char *load = json_string_value(json_object_get(result, "load"));

	for (size_t i = 0; load && i < KINDS; i++) {
		if (strcmp(kinds[i].load, load) == 0)
			return &kinds[i];
	}
	return NULL;
}

/* All are of the kind of the first. */
static const struct merge_kind *check_kinds(json_t *const *files, char **names, unsigned count)
{
	const struct merge_kind *kind = files[0] ? kind_of(files[0]) : NULL;

	for (unsigned i = 0; i < count; i++) {
		if (files[i] && kind && kind_of(files[i]) == kind)
			continue;
		fprintf(stderr, "merge: %s: no result%s%s that --json wrote\n", names[i], kind ? " of " : "",
			kind ? kind->load : "");
		return NULL;
	}
	return kind;
}

static int merge(const struct merge_kind *kind, json_t *const *files, char **names, unsigned count, unsigned output)
{
	char *each = calloc(count + 1, kind->size), *sum = each ? each + count * kind->size : NULL;
	int status = EXIT_FAILURE;
	unsigned done = 0;

	while (each && done < count && kind->read(files[done], each + done * kind->size) == 0)
		kind->add(sum, each + done++ * kind->size);
	if (each && done < count)
		fprintf(stderr, "merge: %s: a part of the result is not there\n", names[done]);
	else if (each)
		status = kind->report(sum, each, count, output);
	free(each);
	return status;
}

static int merge_files(char **names, unsigned count, unsigned output)
{
	json_t **files = calloc(count, sizeof *files);
	int status = EXIT_FAILURE;

	for (unsigned i = 0; files && i < count; i++)
		files[i] = json_load_file(names[i], 0, NULL);
	const struct merge_kind *kind = files ? check_kinds(files, names, count) : NULL;
	if (kind)
		status = merge(kind, files, names, count, output);
	for (unsigned i = 0; files && i < count; i++)
		json_decref(files[i]);
	free(files);
	return status;
}

static const struct option_row rows[] = {
	OPTION_FLAG(0, "json", struct merge_options, output, MERGE_JSON, "the sum as JSON, which can be merged again"),
};

#define ROWS (sizeof rows / sizeof rows[0])

static void help(void)
{
	fputs("cssl-bench merge [OPTIONS] FILE...: the results of several hosts, or of several runs, as one.\n"
	      "Each FILE has what `cssl-bench https --json` or `cssl-bench smtp-source --json` wrote; all are of one "
	      "kind. "
	      "The sum\nis exact, percentiles included. Its time is from the first start to the last end by the clocks "
	      "of "
	      "the hosts, so\nthese have to agree, and rates mean something only if the runs were at the same "
	      "time.\n\n",
		stdout);
	option_table_help(stdout, rows, ROWS);
	fputs("\nExit status: 0; 1: something failed in a run, or a file is no result; 2: bad options.\n", stdout);
}

int merge_main(int argc, char **argv)
{
	struct merge_options options = { .output = MERGE_TEXT };

	switch (option_table_parse("merge", rows, ROWS, argc, argv, &options)) {
	case OPTIONS_HELP: help(); return EXIT_SUCCESS;
	case OPTIONS_BAD: return 2;
	default: break;
	}
	if (optind == argc) {
		fprintf(stderr, "merge: a FILE is needed\n");
		return 2;
	}
	return merge_files(argv + optind, (unsigned)(argc - optind), options.output);
}
