/* command.h: a command of csslctl, and one run of it. The tables of commands and options describe all of
 * it; parsing, usage, manual and completion use them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "csslctl/table.h"

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

/* --- options: one table; the common ones go with every command --- */

/* X(NAME, "name", "VALUE" or NULL for a switch, scope, "meaning") */
#define OPTIONS(X)                                                                                                     \
	X(DIR, "dir", "DIR", COMMON, "the cluster that ./cssl up made in DIR (default: $CSSL_DIR)")                    \
	X(SOCKET, "socket", "PATH", COMMON, "the cluster with this control socket")                                    \
	X(API, "api", "URL", COMMON, "the cluster with its control API at this http or https URL")                     \
	X(TOKEN_FILE, "token-file", "FILE", COMMON, "with --api: the file of the token")                               \
	X(CACERT, "cacert", "FILE", COMMON, "with --api: the CA certificates to trust (default: the system's)")        \
	X(CERT, "cert", "FILE", COMMON, "with --api: the client certificate, PEM")                                     \
	X(KEY, "key", "FILE", COMMON, "with --cert: its private key (default: in the same file)")                      \
	X(JSON, "json", NULL, COMMON, "print the answer of the API, as JSON")                                          \
	X(HELP, "help", NULL, COMMON, "show the operands and options of a command")                                    \
	X(VERSION, "version", NULL, COMMON, "show the version")                                                        \
	X(AGENT, "agent", "NAME", OF_COMMAND, "only of this agent")                                                    \
	X(LISTENER, "listener", "NAME", OF_COMMAND, "only of this listener")                                           \
	X(CLIENT, "client", "NETWORK", OF_COMMAND, "only of clients with this address, or in this network")            \
	X(LIMIT, "limit", "N", OF_COMMAND, "at most so many (default 100)")                                            \
	X(TIMEOUT, "timeout", "TIME", OF_COMMAND,                                                                      \
		"drain: RAgent ends what is left then (default: moves.drain_timeout); agents: wait no longer (1min)")  \
	X(FOR, "for", "TIME", OF_COMMAND, "the block ends after this time, 30d at most (default: at `unblock`)")       \
	X(WAIT, "wait", NULL, OF_COMMAND, "show the progress, and return at its end")                                  \
	X(FOLLOW, "follow", NULL, OF_COMMAND, "go on with what comes, until Ctrl-C")                                   \
	X(ID, "id", "SESSION", OF_COMMAND, "the session with this id")                                                 \
	X(FAMILY, "family", "FAMILY", OF_COMMAND, "all sessions of this family")                                       \
	X(SERVER_NAME, "server-name", "NAME", OF_COMMAND, "sessions for this server name")                             \
	X(TLS, "tls", "VERSION", OF_COMMAND, "sessions of TLS 1.2 or 1.3")                                             \
	X(CIPHER, "cipher", "SUITE", OF_COMMAND, "sessions of this cipher suite, such as TLS_AES_128_GCM_SHA256")      \
	X(OLDER_THAN, "older-than", "TIME", OF_COMMAND, "sessions that are older than this, such as 10min")            \
	X(YOUNGER_THAN, "younger-than", "TIME", OF_COMMAND, "sessions that are younger than this")                     \
	X(CLIENT_CERTIFICATE, "client-certificate", "SHA256", OF_COMMAND,                                              \
		"sessions with the client certificate that has this hash")                                             \
	X(ALL, "all", NULL, OF_COMMAND, "all sessions")                                                                \
	X(NODE, "node", "NAME", OF_COMMAND, "only of this process: RAgent or an agent")                                \
	X(ROLE, "role", "ROLE", OF_COMMAND, "the permission: `read` (default) or `operate`")                           \
	X(CONFIG, "config", "FILE", OF_COMMAND, "the cluster file, for its agents_key and listeners")                  \
	X(AGENTS_KEY, "agents-key", "FILE", OF_COMMAND, "the key file of the agents")                                  \
	X(CONNECTION, "connection", "ID", OF_COMMAND, "the connection of a sealed copy")                               \
	X(KEPT, "kept", "TIME", OF_COMMAND, "how long ago the sealed copy was made (default: now)")                    \
	X(MAN, "man", NULL, OF_COMMAND, "as a manual page")

enum option {
	OPTION_NONE,
#define X(NAME, name, value, scope, meaning) OPTION_##NAME,
	OPTIONS(X)
#undef X
		OPTION_COUNT
};

struct option_row {
	const char *name;
	const char *value; /* NULL: a switch */
	enum option_scope { OPTION_COMMON, OPTION_OF_COMMAND } scope;
	const char *meaning;
};

/* The row of an option; not of OPTION_NONE. */
const struct option_row *option_row(enum option option);

/* OPTION_NONE: no such option. @name need not end at @len. */
enum option option_find(const char *name, unsigned long len);

/* --- commands --- */

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

/* Does what the command says; shows an answer to people. */
typedef enum exit_code run_command(struct invocation *in);
typedef void show_answer(const struct invocation *in, const json_t *answer);

struct command {
	const char *name; /* one or two words */
	struct operand operands[OPERANDS_MAX];
	enum option options[COMMAND_OPTIONS_MAX]; /* in addition to the common ones; OPTION_NONE ends them */
	const char *help;                         /* one line */
	const char *manual;                       /* further sentences, or NULL */
	const char *remedy;                       /* where to look after a refusal, or NULL */
	enum { ASKS_CLUSTER, ASKS_MAIL, WORKS_OFFLINE } reach;
	run_command *run; /* NULL: it shows the answer at @path */
	const char *path; /* "/{}" in it: a segment that is the first operand */
	enum { GETS, ORDERS } method;
	show_answer *show;
	const char *list;             /* @show NULL: a row for each element of this member of the answer */
	const struct column *columns; /* NULL is the title behind the last one */
};

/* The table, and the row of that name or NULL. */
const struct command *commands(size_t *count);
const struct command *command_find(const char *name, size_t name_len);

/* The name that was probably meant by @word, or NULL. */
const char *command_like(const char *word);

bool command_takes(const struct command *c, enum option option);

/* command_agents.c: an agent's state and load, in every view alike. @agent: an element of /v1/status or /v1/agents. */
void agent_state_cell(struct table *t, const json_t *agent);
void agent_busy_cell(struct table *t, const json_t *agent);
enum style agent_state_style(const char *state);

extern const struct column agent_columns[], block_columns[], certificate_columns[], connection_columns[],
	listener_columns[], mail_destinations_columns[], mail_hooks_columns[], mail_pools_columns[],
	mail_senders_columns[], mail_sessions_columns[], session_columns[];

run_command command_agents, command_block, command_completion_bash, command_config_check, command_connection,
	command_connections, command_counters, command_drain, command_end, command_help, command_inspect,
	command_log_level, command_mail_events, command_mail_queue, command_move, command_rest, command_sessions_count,
	command_sessions_list, command_sessions_revoke, command_token_make, command_top, command_weight;

show_answer show_agent, show_agent_names, show_mail_destinations, show_mail_status, show_nodes, show_ready,
	show_session, show_starttls, show_status, show_undrained;
