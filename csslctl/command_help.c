/* command_help.c: help. */
#include <string.h>

#include "csslctl/ask.h"
#include "csslctl/usage.h"

enum exit_code command_help(struct invocation *in)
{
	char name[80];

	if (in->options[OPTION_MAN]) {
		manual_print(in->screen.out);
		return EXIT_DONE;
	}
	if (!in->operands[0]) {
		usage_print(in->screen.out);
		return EXIT_DONE;
	}
	snprintf(name, sizeof name, "%s%s%s", in->operands[0], in->operands[1] ? " " : "",
		in->operands[1] ? in->operands[1] : "");
	const struct command *c = command_find(name, strlen(name));
	if (!c && !in->operands[1] && usage_print_group(name, in->screen.out) > 0)
		return EXIT_DONE;
	if (!c) {
		const char *like = command_like(name);
		complain_of(in, "`csslctl help` lists them", "no such command%s%s%s", like ? "; is it `" : "",
			like ? like : "", like ? "`?" : "");
		return EXIT_USAGE;
	}
	usage_print_of(c, in->screen.out);
	return EXIT_DONE;
}
