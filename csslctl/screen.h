/* screen.h: the output of a command, and whether it has colours. */
#ifndef CSSL_CSSLCTL_SCREEN_H
#define CSSL_CSSLCTL_SCREEN_H

#include <stdio.h>

enum style { STYLE_PLAIN, STYLE_HEAD, STYLE_GOOD, STYLE_WARN, STYLE_BAD, STYLE_DIM, STYLE_COUNT };

struct screen {
	FILE *out;
	enum { SCREEN_PIPE, SCREEN_TERMINAL } kind;
	enum { SCREEN_BLACK_AND_WHITE, SCREEN_COLOUR } colour; /* colour: on a terminal, unless NO_COLOR is set */
	enum screen_form { SCREEN_HUMAN, SCREEN_JSON } form;
};

/* Standard output. */
void screen_open(struct screen *s, enum screen_form form);

/* Columns of the terminal; 80 where that is unknown. */
unsigned screen_width(const struct screen *s);

/* The sequence that begins that style, and the one that ends every style; "" without colour. */
const char *screen_style(const struct screen *s, enum style style);
const char *screen_plain(const struct screen *s);

#endif
