/* manual.c: the same tables in the macros of man(7). */
#include "csslctl/usage.h"

/* A line of text: what roff would take for its own is masked. */
static void print_text(const char *text, FILE *out)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", out);
	for (; *text != '\0'; text++) {
		if (*text == '\\')
			fputs("\\e", out);
		else if (*text == '-')
			fputs("\\-", out);
		else
			fputc(*text, out);
	}
}

static void print_line(const char *text, FILE *out)
{
	print_text(text, out);
	fputc('\n', out);
}

static void print_option(const struct option_row *o, FILE *out)
{
	fputs(".TP\n\\fB\\-\\-", out);
	print_text(o->name, out);
	fputs("\\fR", out);
	if (o->value)
		fprintf(out, " \\fI%s\\fR", o->value);
	fputc('\n', out);
	print_line(o->meaning, out);
}

static void print_command(const struct command *c, FILE *out)
{
	fputs(".TP\n\\fB", out);
	print_text(c->name, out);
	fputs("\\fR", out);
	for (unsigned i = 0; i < OPERANDS_MAX && c->operands[i].name; i++)
		fprintf(out, c->operands[i].presence == OPERAND_OPTIONAL ? " [\\fI%s\\fR]" : " \\fI%s\\fR",
			c->operands[i].name);
	fputc('\n', out);
	print_text(c->help, out);
	fputs(".\n", out);
	if (c->manual)
		print_line(c->manual, out);
	if (c->options[0] == OPTION_NONE)
		return;
	fputs(".RS\n", out);
	for (unsigned i = 0; i < COMMAND_OPTIONS_MAX && c->options[i] != OPTION_NONE; i++)
		print_option(option_row(c->options[i]), out);
	fputs(".RE\n", out);
}

static void print_head(FILE *out)
{
	fprintf(out, ".TH CSSLCTL 1 \"\" \"CSSL %s\" \"CSSL\"\n", CSSL_VERSION);
	fputs(".SH NAME\ncsslctl \\- see and steer a CSSL cluster\n", out);
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
	fputs(".SH SEE ALSO\nragent \\-\\-help, sslagent \\-\\-help, and the README of CSSL\n", out);
}
