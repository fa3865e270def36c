/* manual.c: the same tables in the macros of man(7). */
#include "conf/program.h"
#include "csslctl/usage.h"

static void print_option(const struct option_row *o, FILE *out)
{
	char name[64];

	snprintf(name, sizeof name, "--%s", o->name);
	roff_tag(name, o->value, out);
	roff_line(o->meaning, out);
}

static void print_command(const struct command *c, FILE *out)
{
	fputs(".TP\n\\fB", out);
	roff_text(c->name, ROFF_WITHIN_LINE, out);
	fputs("\\fR", out);
	for (unsigned i = 0; i < OPERANDS_MAX && c->operands[i].name; i++)
		fprintf(out, c->operands[i].presence == OPERAND_OPTIONAL ? " [\\fI%s\\fR]" : " \\fI%s\\fR",
			c->operands[i].name);
	fputc('\n', out);
	roff_text(c->help, ROFF_LINE_START, out);
	fputs(".\n", out);
	if (c->manual)
		roff_line(c->manual, out);
	if (c->options[0] == OPTION_NONE)
		return;
	fputs(".RS\n", out);
	for (unsigned i = 0; i < COMMAND_OPTIONS_MAX && c->options[i] != OPTION_NONE; i++)
		print_option(option_row(c->options[i]), out);
	fputs(".RE\n", out);
}

static void print_head(FILE *out)
{
	roff_page("csslctl", 1, CSSL_VERSION, "see and steer a CSSL cluster", out);
	fputs(".SH SYNOPSIS\n\\fBcsslctl\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n", out);
	fputs(".SH DESCRIPTION\n"
	      "Asks RAgent's control API, over its UNIX control socket or a URL. Output is made for people: aligned "
	      "columns, "
	      "colour on a terminal unless \\fBNO_COLOR\\fR is set. With \\fB\\-\\-json\\fR it is what the API "
	      "answered. "
	      "Options may stand before and behind the command; a connection is named by its id or a unique beginning "
	      "of "
	      "it.\n",
		out);
}

void manual_print(FILE *out)
{
	size_t count;
	const struct command *all = commands(&count);

	print_head(out);
	fputs(".SH COMMANDS\n", out);
	for (size_t i = 0; i < count; i++)
		print_command(&all[i], out);
	fputs(".SH OPTIONS\n", out);
	for (enum option o = OPTION_NONE + 1; o < OPTION_COUNT; o++)
		if (option_row(o)->scope == OPTION_COMMON)
			print_option(option_row(o), out);
	fputs(".SH EXIT STATUS\n", out);
#define X(name, value, meaning) fprintf(out, ".TP\n\\fB%d\\fR\n%s\n", value, meaning);
	EXIT_CODES(X)
#undef X
	fputs(".SH ENVIRONMENT\n.TP\n\\fBCSSL_DIR\\fR\nthe cluster, where no option names one\n", out);
	fputs(".TP\n\\fBNO_COLOR\\fR\nno colours, when it is set and not empty\n", out);
	fputs(".SH SEE ALSO\nragent(8), sslagent(8), cssl.yaml(5)\n", out);
}
