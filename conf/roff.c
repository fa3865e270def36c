/* roff.c: escapes hyphens, backslashes, and a point or an apostrophe that begins a line.
 */
#include "conf/roff.h"

#include <ctype.h>

void roff_text(const char *text, enum roff_place at, FILE *out)
{
	if (at == ROFF_LINE_START && (*text == '.' || *text == '\''))
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

void roff_line(const char *text, FILE *out)
{
	roff_text(text, ROFF_LINE_START, out);
	fputc('\n', out);
}

void roff_tag(const char *bold, const char *italic, FILE *out)
{
	fputs(".TP\n\\fB", out);
	roff_text(bold, ROFF_WITHIN_LINE, out);
	fputs("\\fR", out);
	if (italic) {
		fputs(" \\fI", out);
		roff_text(italic, ROFF_WITHIN_LINE, out);
		fputs("\\fR", out);
	}
	fputc('\n', out);
}

void roff_page(const char *name, unsigned section, const char *version, const char *summary, FILE *out)
{
	fputs(".TH ", out);
	for (const char *c = name; *c != '\0'; c++)
		fputc(toupper((unsigned char)*c), out);
	fprintf(out, " %u \"\" \"CSSL %s\" \"CSSL\"\n.SH NAME\n", section, version);
	roff_text(name, ROFF_LINE_START, out);
	fputs(" \\- ", out);
	roff_line(summary, out);
}
