/* usage.c: help. */
#include "csslctl/usage.h"

#include <stdarg.h>
#include <string.h>

#define INDENT     26u
#define TEXT_WIDTH 90u

static void add(char *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(char *out, const char *format, ...)
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
		add(out, c->operands[i].presence == OPERAND_OPTIONAL ? " [%s]" : " %s", c->operands[i].name);
	for (unsigned i = 0; i < COMMAND_OPTIONS_MAX && c->options[i] != OPTION_NONE; i++) {
		const struct option_row *o = option_row(c->options[i]);
		add(out, o->value ? " [--%s %s]" : " [--%s]", o->name, o->value);
	}
}

static void print_option(enum option option, FILE *out)
{
	char head[SYNOPSIS_MAX] = "";
	const struct option_row *o = option_row(option);

	add(head, o->value ? "--%s %s" : "--%s", o->name, o->value);
	fprintf(out, "  %-*s%s\n", (int)INDENT - 2, head, o->meaning);
}

static void print_common_options(FILE *out)
{
	for (enum option o = OPTION_NONE + 1; o < OPTION_COUNT; o++)
		if (option_row(o)->scope == OPTION_COMMON)
			print_option(o, out);
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
			add(head, all[i].operands[j].presence == OPERAND_OPTIONAL ? " [%s]" : " %s",
				all[i].operands[j].name);
		fprintf(out, "  %-*s %s\n", (int)INDENT - 3, head, all[i].help);
	}
	fputs("\nwith every command:\n", out);
	print_common_options(out);
	fputs("\nexit codes:\n", out);
#define X(name, value, meaning) fprintf(out, "  %-*d%s\n", (int)INDENT - 2, value, meaning);
	EXIT_CODES(X)
#undef X
	fputs("\n`csslctl help COMMAND` says more of one.\n", out);
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
		print_option(c->options[i], out);
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
		fprintf(out, "\n`csslctl help %s WORD` says more of one.\n", word);
	return found;
}
