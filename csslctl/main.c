/* main.c: csslctl, the operator's tool of a CSSL cluster. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "csslctl/arguments.h"
#include "csslctl/ask.h"
#include "csslctl/place.h"
#include "csslctl/usage.h"
#include "proto/error.h"

static enum exit_code csslctl_fail(enum exit_code code, const char *reason)
{
	fprintf(stderr, "csslctl: %s\n", reason);
	return code;
}

/* The folder of the environment counts only when no option names a cluster. */
static enum exit_code reach_cluster(struct invocation *in)
{
	char error[PLACE_ERROR_MAX];
	struct place place;
	const int found = place_find(in, getenv("CSSL_DIR"), &place, error);

	if (found < 0)
		return csslctl_fail(found == CSSL_E_NOT_FOUND ? EXIT_UNREACHABLE : EXIT_USAGE, error);
	in->api = api_create(&place, error);
	place_clear(&place);
	return in->api ? EXIT_DONE : csslctl_fail(EXIT_USAGE, error);
}

static enum exit_code command_run(struct invocation *in)
{
	enum exit_code code = EXIT_DONE;

	screen_open(&in->screen, in->options[OPTION_JSON] ? SCREEN_JSON : SCREEN_HUMAN);
	if (in->command->reach != WORKS_OFFLINE)
		code = reach_cluster(in);
	if (code == EXIT_DONE)
		code = in->command->run ? in->command->run(in) : ask_and_show_row(in);
	api_destroy(in->api);
	if (fflush(stdout) != 0 || ferror(stdout))
		return csslctl_fail(EXIT_REFUSED, "standard output cannot be written");
	return code;
}

int main(int argc, char **argv)
{
	char error[ARGUMENTS_ERROR_MAX];
	struct invocation in;
	const int bad = arguments_parse(argc, argv, &in, error);

	if (sodium_init() < 0)
		return csslctl_fail(EXIT_REFUSED, "the crypto library failed");
	text_locale();
	if (bad)
		return csslctl_fail(EXIT_USAGE, error);
	if (in.options[OPTION_VERSION]) {
		printf("csslctl %s\n", CSSL_VERSION);
		return EXIT_DONE;
	}
	if (in.command && in.options[OPTION_HELP]) {
		usage_print_of(in.command, stdout);
		return EXIT_DONE;
	}
	if (in.command)
		return command_run(&in);
	usage_print(in.options[OPTION_HELP] ? stdout : stderr);
	return in.options[OPTION_HELP] ? EXIT_DONE : EXIT_USAGE;
}
