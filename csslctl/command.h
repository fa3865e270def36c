/* command.h: a command of csslctl, and one run of it. The tables in commands.c and options.c describe all commands;
 * parsing, usage, manual and completion use them. */
#ifndef CSSL_CSSLCTL_COMMAND_H
#define CSSL_CSSLCTL_COMMAND_H

#include <stddef.h>

#include <jansson.h>

#include "csslctl/options.h"
#include "csslctl/screen.h"

/* X(name, value, meaning) */
#define EXIT_CODES(X)                                                                                                  \
	X(EXIT_DONE, 0, "done")                                                                                        \
	X(EXIT_REFUSED, 1, "the cluster refused, or a check found faults")                                             \
	X(EXIT_USAGE, 2, "the command line is wrong")                                                                  \
	X(EXIT_UNREACHABLE, 3, "the cluster cannot be reached")

enum exit_code {
#define X(name, value, meaning) name = value,
	EXIT_CODES(X)
#undef X
};

#define OPERANDS_MAX        3u
#define COMMAND_OPTIONS_MAX 11u

/* An argument after the words of a command. */
struct operand {
	const char *name; /* NULL: no such operand */
	enum operand_kind { OPERAND_TEXT, OPERAND_AGENT, OPERAND_FILE, OPERAND_COMMAND } kind; /* for completion */
	enum { OPERAND_REQUIRED, OPERAND_OPTIONAL } presence;
};

struct api;

/* One run. Strings are those of the command line. */
struct invocation {
	const struct command *command;
	const char *operands[OPERANDS_MAX];
	const char *options[OPTION_COUNT]; /* NULL: not given; "" for a given switch */
	struct screen screen;
	struct api *api; /* NULL for commands that ask no cluster */
};

/* Shows an answer to people. */
typedef void show_answer(const struct invocation *in, const json_t *answer);

struct command {
	const char *name; /* one or two words */
	struct operand operands[OPERANDS_MAX];
	enum option options[COMMAND_OPTIONS_MAX]; /* in addition to the common ones; OPTION_NONE ends them */
	const char *help;                         /* one line */
	const char *manual;                       /* further sentences, or NULL */
	const char *remedy;                       /* where to look after a refusal, or NULL */
	enum { ASKS_CLUSTER, ASKS_MAIL, WORKS_OFFLINE } reach;
	enum exit_code (*run)(struct invocation *in); /* NULL: it shows the answer at @path, which needs no arguments */
	const char *path;
	enum { GETS, ORDERS } method;
	show_answer *show;
};

/* The table, and the row of that name or NULL. */
const struct command *commands(size_t *count);
const struct command *command_find(const char *name, size_t name_len);

/* The name that was probably meant by @word, or NULL. */
const char *command_like(const char *word);

int command_takes(const struct command *c, enum option option);

enum exit_code command_agent(struct invocation *in);
enum exit_code command_agents(struct invocation *in);
enum exit_code command_block(struct invocation *in);
enum exit_code command_completion_bash(struct invocation *in);
enum exit_code command_config_check(struct invocation *in);
enum exit_code command_connection(struct invocation *in);
enum exit_code command_connections(struct invocation *in);
enum exit_code command_counters(struct invocation *in);
enum exit_code command_drain(struct invocation *in);
enum exit_code command_end(struct invocation *in);
enum exit_code command_help(struct invocation *in);
enum exit_code command_inspect(struct invocation *in);
enum exit_code command_log_level(struct invocation *in);
enum exit_code command_mail_events(struct invocation *in);
enum exit_code command_mail_queue(struct invocation *in);
enum exit_code command_move(struct invocation *in);
enum exit_code command_rest(struct invocation *in);
enum exit_code command_sessions_count(struct invocation *in);
enum exit_code command_sessions_list(struct invocation *in);
enum exit_code command_sessions_show(struct invocation *in);
enum exit_code command_sessions_revoke(struct invocation *in);
enum exit_code command_token_make(struct invocation *in);
enum exit_code command_top(struct invocation *in);
enum exit_code command_undrain(struct invocation *in);
enum exit_code command_weight(struct invocation *in);

show_answer show_agent_names;
show_answer show_blocks;
show_answer show_certificates;
show_answer show_listeners;
show_answer show_mail_destinations;
show_answer show_mail_hooks;
show_answer show_mail_pools;
show_answer show_mail_senders;
show_answer show_mail_sessions;
show_answer show_mail_status;
show_answer show_nodes;
show_answer show_ready;
show_answer show_starttls;
show_answer show_status;

#endif
