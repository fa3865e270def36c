/* usage.c: help, as text and as a manual page. */
#include "csslctl/usage.h"

#include <stdarg.h>
#include <string.h>

#include "conf/program.h"
#include "csslctl/ask.h"

#define INDENT     26u
#define TEXT_WIDTH 90u

__attribute__((format(printf, 2, 3))) static void synopsis_add(char *out, const char *format, ...)
{
	const size_t len = strlen(out);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(out + len, SYNOPSIS_MAX - len, format, arguments);
	va_end(arguments);
}

void synopsis_of(const struct command *c, char out[static SYNOPSIS_MAX])
{
	snprintf(out, SYNOPSIS_MAX, "%s", c->name);
	for (unsigned i = 0; i < OPERANDS_MAX && c->operands[i].name; i++)
		synopsis_add(out, c->operands[i].presence == OPERAND_OPTIONAL ? " [%s]" : " %s", c->operands[i].name);
	for (unsigned i = 0; i < COMMAND_OPTIONS_MAX && c->options[i] != OPTION_NONE; i++) {
		const struct option_row *o = option_row(c->options[i]);
		synopsis_add(out, o->value ? " [--%s %s]" : " [--%s]", o->name, o->value);
	}
}

static void usage_print_option(enum option option, FILE *out)
{
	char head[SYNOPSIS_MAX] = "";
	const struct option_row *o = option_row(option);

	synopsis_add(head, o->value ? "--%s %s" : "--%s", o->name, o->value);
	fprintf(out, "  %-*s %s\n", (int)INDENT - 3, head, o->meaning);
}

static void print_common_options(FILE *out)
{
	for (enum option o = OPTION_NONE + 1; o < OPTION_COUNT; o++)
		if (option_row(o)->scope == OPTION_COMMON)
			usage_print_option(o, out);
}

void usage_print(FILE *out)
{
	size_t count;
	const struct command *all = commands(&count);

	fputs("usage: csslctl COMMAND [OPTIONS]\n\n", out);
	for (size_t i = 0; i < count; i++) {
		char head[SYNOPSIS_MAX];
		snprintf(head, sizeof head, "%s", all[i].name);
		for (unsigned j = 0; j < OPERANDS_MAX && all[i].operands[j].name; j++)
			synopsis_add(head, all[i].operands[j].presence == OPERAND_OPTIONAL ? " [%s]" : " %s",
				all[i].operands[j].name);
		fprintf(out, "  %-*s %s\n", (int)INDENT - 3, head, all[i].help);
	}
	fputs("\nwith every command:\n", out);
	print_common_options(out);
	fputs("\nexit codes:\n", out);
#define X(name, value, meaning) fprintf(out, "  %-*d%s\n", (int)INDENT - 2, value, meaning);
	EXIT_CODES(X)
#undef X
	fputs("\n`csslctl help COMMAND` says more of a command.\n", out);
}

/* Words of @text, filled into lines. */
static void print_filled(const char *text, FILE *out)
{
	size_t column = 0;

	while (*text != '\0') {
		const size_t len = strcspn(text, " ");
		if (column > 0 && column + 1 + len > TEXT_WIDTH) {
			fputc('\n', out);
			column = 0;
		}
		fprintf(out, "%s%.*s", column > 0 ? " " : "", (int)len, text);
		column += len + (column > 0);
		text += len + (text[len] == ' ');
	}
	fputc('\n', out);
}

void usage_print_of(const struct command *c, FILE *out)
{
	char synopsis[SYNOPSIS_MAX];

	synopsis_of(c, synopsis);
	fprintf(out, "usage: csslctl %s\n\n", synopsis);
	print_filled(c->help, out);
	if (c->manual)
		print_filled(c->manual, out);
	if (c->options[0] != OPTION_NONE)
		fputc('\n', out);
	for (unsigned i = 0; i < COMMAND_OPTIONS_MAX && c->options[i] != OPTION_NONE; i++)
		usage_print_option(c->options[i], out);
	fputs("\nwith every command:\n", out);
	print_common_options(out);
}

unsigned usage_print_group(const char *word, FILE *out)
{
	const size_t len = strlen(word);
	char synopsis[SYNOPSIS_MAX];
	unsigned found = 0;
	size_t count;
	const struct command *all = commands(&count);

	for (size_t i = 0; i < count; i++) {
		if (strncmp(all[i].name, word, len) != 0 || all[i].name[len] != ' ')
			continue;
		synopsis_of(&all[i], synopsis);
		fprintf(out, "%susage: csslctl %s\n", found++ ? "\n" : "", synopsis);
		print_filled(all[i].help, out);
	}
	if (found)
		fprintf(out, "\n`csslctl help %s WORD` says more of a command.\n", word);
	return found;
}

/* --- the same tables in the macros of man(7) --- */

static void roff_option(const struct option_row *o, FILE *out)
{
	char name[64];

	snprintf(name, sizeof name, "--%s", o->name);
	roff_tag(name, o->value, out);
	roff_line(o->meaning, out);
}

static void roff_command(const struct command *c, FILE *out)
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
		roff_option(option_row(c->options[i]), out);
	fputs(".RE\n", out);
}

static void roff_head(FILE *out)
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

	roff_head(out);
	fputs(".SH COMMANDS\n", out);
	for (size_t i = 0; i < count; i++)
		roff_command(&all[i], out);
	fputs(".SH OPTIONS\n", out);
	for (enum option o = OPTION_NONE + 1; o < OPTION_COUNT; o++)
		if (option_row(o)->scope == OPTION_COMMON)
			roff_option(option_row(o), out);
	fputs(".SH EXIT STATUS\n", out);
#define X(name, value, meaning) fprintf(out, ".TP\n\\fB%d\\fR\n%s\n", value, meaning);
	EXIT_CODES(X)
#undef X
	fputs(".SH ENVIRONMENT\n.TP\n\\fBCSSL_DIR\\fR\nthe cluster, where no option names one\n", out);
	fputs(".TP\n\\fBNO_COLOR\\fR\nno colours, when it is set and not empty\n", out);
	fputs(".SH SEE ALSO\nragent(8), sslagent(8), cssl.yaml(5)\n", out);
}

/* --- the command --- */

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
	/* the first word of a group is no command, but a question that has an answer */
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
