/* ask.h: the parts of commands: ask the cluster one question, show its answer, or tell the operator why there is none.
 */
#pragma once

#include <stdint.h>

#include "csslctl/api.h"
#include "csslctl/command.h"

/* EXIT_DONE and *@answer; else the operator was told why, and with EXIT_REFUSED *@answer has the cluster's words beside
 * its reason, or is NULL. @body: owned from now on; NULL for none. The caller owns *@answer. */
enum exit_code ask(struct invocation *in, const char *method, const struct path *path, json_t *body, json_t **answer);

/* The same, and it shows the answer: as it came with --json, else by @show (NULL: as the row says). A refusal, too, is
 * shown if it says what others have done. EXIT_REFUSED also if agents have not answered, or not confirmed an order. */
enum exit_code ask_and_show(
	struct invocation *in, const char *method, const struct path *path, json_t *body, show_answer *show);
char *names_of(const json_t *names); /* "a1, a2"; for free() */
/* What the row of the command names. */
enum exit_code ask_and_show_row(struct invocation *in);

uint64_t ask_now_ms(void); /* CLOCK_MONOTONIC */

/* On standard output. */
void show_json(const struct invocation *in, const json_t *value);

/* To standard error: "csslctl drain a1: " and the sentence, then the remedy (may be NULL) on a line of its own. */
void complain_of(const struct invocation *in, const char *remedy, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same, and EXIT_USAGE; the remedy is the command's help. */
enum exit_code misused(const struct invocation *in, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- a list that the API gives in pages, up to --limit rows --- */

/* A parameter of the query; left out if @value is NULL. A NULL name ends an array. */
struct listing_filter {
	const char *name, *value;
};

/* Show the list that the row of the command names: with --json as one object in the API's form, else as the row says
 * and a line that tells whether there is more. */
enum exit_code listing_show(struct invocation *in, const struct listing_filter *filters);
