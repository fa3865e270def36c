/* screen.c: terminals, their colours (ECMA-48 SGR), termios, and the few control sequences that every terminal of today
 * has (ECMA-48, DEC private modes 25 and 1049).
 */
#include "csslctl/screen.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define FRAME      8u /* brackets, blank, percentage */
#define WIDTH      40u
#define BETWEEN_MS 1000u
#define CLEAR_LINE "\r\033[K"

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
	const bool dumb = terminal && strcmp(terminal, "dumb") == 0;

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

/* --- progress --- */

void progress_start(struct progress *p, const struct screen *s)
{
	*p = (struct progress){ .screen = s };
}

void progress_bar(uint64_t done, uint64_t total, unsigned width, char out[static PROGRESS_BAR_MAX + 1])
{
	const unsigned inner = (width < PROGRESS_BAR_MAX ? width : PROGRESS_BAR_MAX) - FRAME;
	char marks[PROGRESS_BAR_MAX];

	if (done > total)
		done = total;
	const unsigned full = total == 0 ? inner : (unsigned)((double)done / (double)total * inner);
	/* It says 100 only when nothing is left. */
	const unsigned percent = total == 0 ? 100 : (unsigned)((double)done / (double)total * 100);
	memset(marks, '#', full);
	memset(marks + full, '.', inner - full);
	snprintf(out, PROGRESS_BAR_MAX + 1, "[%.*s] %3u%%", (int)inner, marks, percent);
}

void progress_show(struct progress *p, uint64_t done, uint64_t total, const char *words, uint64_t now_ms)
{
	char bar[PROGRESS_BAR_MAX + 1];
	FILE *out = p->screen->out;

	if (p->screen->form == SCREEN_JSON)
		return;
	if (p->screen->kind == SCREEN_TERMINAL) {
		progress_bar(done, total, WIDTH, bar);
		const int room = (int)screen_width(p->screen) - (int)WIDTH - 3;
		fprintf(out, CLEAR_LINE "%s  %.*s", bar, room > 0 ? room : 0, words);
		p->drawn = PROGRESS_DRAWN;
	} else if (p->said_ms == 0 || now_ms - p->said_ms >= BETWEEN_MS) {
		fprintf(out, "%" PRIu64 " of %" PRIu64 ", %s\n", done, total, words);
		p->said_ms = now_ms;
	}
	fflush(out);
}

void progress_end(struct progress *p)
{
	if (p->drawn == PROGRESS_DRAWN)
		fputs(CLEAR_LINE, p->screen->out);
	p->drawn = PROGRESS_NOTHING;
}

/* --- Ctrl-C --- */

static volatile sig_atomic_t noted;

static void screen_on_signal(int number)
{
	noted = 1;
}

void interrupt_watch(void)
{
	const struct sigaction action = { .sa_handler = screen_on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

int interrupted(void)
{
	return noted;
}

/* --- a live page --- */

static struct termios before;
static enum { ORDINARY, LIVE } mode;

static void screen_say(const char *sequence)
{
	fputs(sequence, stdout);
	fflush(stdout);
}

int live_terminal_begin(const struct screen *s)
{
	struct termios live;

	if (s->kind != SCREEN_TERMINAL || tcgetattr(STDIN_FILENO, &before) < 0)
		return -1;
	live = before;
	live.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	interrupt_watch();
	atexit(live_terminal_end);
	mode = LIVE;
	tcsetattr(STDIN_FILENO, TCSANOW, &live);
	screen_say("\033[?1049h\033[?25l");
	return 0;
}

void live_terminal_end(void)
{
	if (mode == ORDINARY)
		return;
	mode = ORDINARY;
	screen_say("\033[?25h\033[?1049l");
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

void live_page_begin(const struct screen *s)
{
	fputs("\033[H\033[J", s->out);
}

void live_page_end(const struct screen *s)
{
	fflush(s->out);
}

enum live_wish live_wait(unsigned ms)
{
	struct pollfd keys = { .fd = STDIN_FILENO, .events = POLLIN };
	char key;

	if (poll(&keys, 1, (int)ms) > 0 && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q'))
		return LIVE_STOP;
	return interrupted() ? LIVE_STOP : LIVE_GO_ON;
}
