/* live_terminal.c: termios and the few control sequences that every terminal of today has (ECMA-48, DEC private modes
 * 25 and 1049). */
#include "csslctl/live_terminal.h"

#include <poll.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "csslctl/interrupt.h"

static struct termios before;
static enum { ORDINARY, LIVE } mode;

static void say(const char *sequence)
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
	say("\033[?1049h\033[?25l");
	return 0;
}

void live_terminal_end(void)
{
	if (mode == ORDINARY)
		return;
	mode = ORDINARY;
	say("\033[?25h\033[?1049l");
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
