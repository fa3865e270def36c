/* progress.h: shows progress: a bar on a terminal, lines from time to time elsewhere. */
#ifndef CSSL_CSSLCTL_PROGRESS_H
#define CSSL_CSSLCTL_PROGRESS_H

#include <stdint.h>

#include "csslctl/screen.h"

#define PROGRESS_BAR_MAX 120u

struct progress {
	const struct screen *screen;
	uint64_t said_ms; /* when the last line was printed; 0: none yet */
	enum { PROGRESS_NOTHING, PROGRESS_DRAWN } drawn;
};

void progress_start(struct progress *p, const struct screen *s);
/* @done of @total; @words stand after it. */
void progress_show(struct progress *p, uint64_t done, uint64_t total, const char *words, uint64_t now_ms);
/* Remove the bar; the next output begins a line. */
void progress_end(struct progress *p);

/* Write "[#####.....]  52%" to @out, @width columns in all. @total 0: 100%. */
void progress_bar(uint64_t done, uint64_t total, unsigned width, char out[static PROGRESS_BAR_MAX + 1]);

#endif
