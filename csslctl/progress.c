/* progress.c: bar and lines. */
#include "csslctl/progress.h"

#include <inttypes.h>
#include <string.h>

#define FRAME      8u /* brackets, blank, percentage */
#define WIDTH      40u
#define BETWEEN_MS 1000u
#define CLEAR_LINE "\r\033[K"

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
