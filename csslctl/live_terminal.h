/* live_terminal.h: shows one changing page on a terminal: on the alternate screen, without echo. At any end of the
 * process the terminal is as before. */
#ifndef CSSL_CSSLCTL_LIVE_TERMINAL_H
#define CSSL_CSSLCTL_LIVE_TERMINAL_H

#include "csslctl/screen.h"

/* 0, or negative: standard input or output is no terminal. */
int live_terminal_begin(const struct screen *s);
void live_terminal_end(void);

/* Write a page between these two: it replaces the one before without flicker. */
void live_page_begin(const struct screen *s);
void live_page_end(const struct screen *s);

/* Wait for @ms. LIVE_STOP: q, Ctrl-C or SIGTERM came, or the terminal is gone. */
enum live_wish { LIVE_GO_ON, LIVE_STOP };
enum live_wish live_wait(unsigned ms);

#endif
