/* screen.h: the output of a command, and whether it has colours; its progress, and pages that change; Ctrl-C.
 */
#pragma once

#include <stdint.h>
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

/* --- progress: a bar on a terminal, lines from time to time elsewhere --- */

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

/* --- one changing page on a terminal: on the alternate screen, without echo. At any end of the process the terminal is
 * as before --- */

/* 0, or negative: standard input or output is no terminal. */
int live_terminal_begin(const struct screen *s);
void live_terminal_end(void);

/* Write a page between these two: it replaces the one before without flicker. */
void live_page_begin(const struct screen *s);
void live_page_end(const struct screen *s);

/* Wait for @ms. LIVE_STOP: q, Ctrl-C or SIGTERM came, or the terminal is gone. */
enum live_wish { LIVE_GO_ON, LIVE_STOP };
enum live_wish live_wait(unsigned ms);

/* --- Ctrl-C while a command waits: the command tells what goes on in the cluster, and ends --- */

/* From now on SIGINT and SIGTERM are noted and do not end the process. They interrupt system calls that wait. */
void interrupt_watch(void);
int interrupted(void);
