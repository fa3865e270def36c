/* roff.h: writes text in the macros of man(7). Characters that roff would interpret are escaped. */
#ifndef CSSL_CONF_ROFF_H
#define CSSL_CONF_ROFF_H

#include <stdio.h>

/* The head of a page, as for "RAGENT" 8, and its section NAME. */
void roff_page(const char *name, unsigned section, const char *version, const char *summary, FILE *out);
/* A part of a line; with ROFF_LINE_START its beginning. */
enum roff_place { ROFF_WITHIN_LINE, ROFF_LINE_START };
void roff_text(const char *text, enum roff_place at, FILE *out);
/* A whole line. */
void roff_line(const char *text, FILE *out);
/* The name of a tagged paragraph: "--config FILE" with the one in bold, the other (or NULL) in italics. */
void roff_tag(const char *bold, const char *italic, FILE *out);

#endif
