/* screen.c: terminals and their colours (ECMA-48 SGR). */
#include "csslctl/screen.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char *const styles[STYLE_COUNT] = {
	[STYLE_PLAIN] = "",
	[STYLE_HEAD] = "\033[1m",
	[STYLE_GOOD] = "\033[32m",
	[STYLE_WARN] = "\033[33m",
	[STYLE_BAD] = "\033[31m",
	[STYLE_DIM] = "\033[2m",
};

void screen_open(struct screen *s, enum screen_form form)
{
	const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
	const int dumb = terminal && strcmp(terminal, "dumb") == 0;

	*s = (struct screen){ .out = stdout, .form = form };
	s->kind = isatty(STDOUT_FILENO) ? SCREEN_TERMINAL : SCREEN_PIPE;
	if (s->kind == SCREEN_TERMINAL && !dumb && (!no_colour || *no_colour == '\0'))
		s->colour = SCREEN_COLOUR;
}

unsigned screen_width(const struct screen *s)
{
	struct winsize size = { 0 };

	return ioctl(fileno(s->out), TIOCGWINSZ, &size) < 0 || size.ws_col == 0 ? 80 : size.ws_col;
}

const char *screen_style(const struct screen *s, enum style style)
{
	return s->colour == SCREEN_COLOUR ? styles[style] : "";
}

const char *screen_plain(const struct screen *s)
{
	return s->colour == SCREEN_COLOUR ? "\033[0m" : "";
}
