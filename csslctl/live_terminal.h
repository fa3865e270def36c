/* live_terminal.h: a terminal that shows one changing page: the alternate screen, keys unechoed, and all as before at
 * the end, whichever way it ends. */
#ifndef CSSL_CSSLCTL_LIVE_TERMINAL_H
#define CSSL_CSSLCTL_LIVE_TERMINAL_H

#include "csslctl/screen.h"

/* 0, or negative: standard input or output is no terminal. */
int live_terminal_begin(const struct screen *s);
void live_terminal_end(void);

/* A page is written between these: over the one before, without flicker. */
void live_page_begin(const struct screen *s);
void live_page_end(const struct screen *s);

/* Until @ms have passed or somebody wants to stop: q, Ctrl-C, SIGTERM, or a terminal that is gone. */
enum live_wish { LIVE_GO_ON, LIVE_STOP };
enum live_wish live_wait(unsigned ms);

#endif
