/* commands.c: the table of commands, and how a name is found in it. */
#include <string.h>

#include "conf/nearest.h"
#include "csslctl/command.h"

#define AGENT_OPERAND                                                                                                  \
	{                                                                                                              \
		"AGENT", OPERAND_AGENT, OPERAND_REQUIRED                                                               \
	}
#define CONNECTION_OPERAND                                                                                             \
	{                                                                                                              \
		"ID", OPERAND_TEXT, OPERAND_REQUIRED                                                                   \
	}
#define SESSION_FILTERS                                                                                                \
	OPTION_SERVER_NAME, OPTION_CLIENT, OPTION_TLS, OPTION_CIPHER, OPTION_OLDER_THAN, OPTION_YOUNGER_THAN,          \
		OPTION_FAMILY, OPTION_CLIENT_CERTIFICATE
#define LIST_AGENTS      "`csslctl agents` lists the agents"
#define LIST_CONNECTIONS "`csslctl connections` lists them"

static const struct command rows[] = {
	{ "status", .help = "the cluster at a glance: RAgent, its agents, its listeners", .run = command_status },
	{ "listeners", .help = "every listener: connections, handshakes, refusals, bytes",
		.manual = "RAgent counts since its start, and goes on counting when a new RAgent replaces it. REFUSED "
			  "are "
			  "connections that RAgent ended before a handshake began: a limit, a PROXY header, not TLS. "
			  "With "
			  "--json there are policies and addresses, too.",
		.run = command_listeners },
	{ "agents", .help = "every agent: state, load, version, clock, drain",
		.manual = "CLOCK is the agent's time of day less RAgent's.", .run = command_agents },
	{ "agent", { AGENT_OPERAND }, .help = "one agent", .remedy = LIST_AGENTS, .run = command_agent },
	{ "connections show", { CONNECTION_OPERAND }, .help = "one connection, and who owned it before",
		.manual = "The same as `connection`.", .remedy = LIST_CONNECTIONS, .run = command_connection },
	{ "connections", .options = { OPTION_AGENT, OPTION_LISTENER, OPTION_CLIENT, OPTION_LIMIT },
		.help = "client connections, each with its owner",
		.remedy = "`csslctl status` lists agents and listeners", .run = command_connections },
	{ "connection", { CONNECTION_OPERAND }, .help = "one connection",
		.manual = "ID is a connection id or a unique beginning of one.", .remedy = LIST_CONNECTIONS,
		.run = command_connection },
	{ "move", { CONNECTION_OPERAND, { "AGENT", OPERAND_AGENT, OPERAND_REQUIRED } },
		.help = "give a connection to another agent",
		.manual = "Returns when the move ended. The client notices nothing; where the move is refused, "
			  "the connection stays where it is.",
		.remedy = "`csslctl connections` and `csslctl agents` list what there is", .run = command_move },
	{ "rest", { CONNECTION_OPERAND }, .help = "take a connection off its agent until its next record",
		.remedy = LIST_CONNECTIONS, .run = command_rest },
	{ "drain", { AGENT_OPERAND }, { OPTION_TIMEOUT, OPTION_WAIT },
		.help = "empty an agent: nothing new, and its connections go elsewhere",
		.manual =
			"Idle connections leave at once, others at their next checkpoint. What is still there when the "
			"time is up is ended. The agent gets nothing until `undrain`. With --wait the exit code is 1 "
			"when connections had to be ended; an interrupted wait leaves the drain going on.",
		.remedy = LIST_AGENTS, .run = command_drain },
	{ "undrain", { AGENT_OPERAND }, .help = "let a drained agent take connections again", .remedy = LIST_AGENTS,
		.run = command_undrain },
	{ "weight", { AGENT_OPERAND, { "X", OPERAND_TEXT, OPERAND_REQUIRED } },
		.help = "change an agent's share of handshakes and clients",
		.manual = "Until RAgent's next start, which goes by the cluster file again.", .remedy = LIST_AGENTS,
		.run = command_weight },
	{ "sessions list", .options = { SESSION_FILTERS, OPTION_LIMIT }, .help = "sessions that the agents can resume",
		.manual = "RAgent asks the agent that holds most, or every agent where the cluster file has "
			  "`replicas`. Hits are "
			  "resumptions on the agent that answered for the session.",
		.run = command_sessions_list },
	{ "sessions show", { { "SESSION", OPERAND_TEXT, OPERAND_REQUIRED } },
		.help = "one session, and which agents hold it", .remedy = "`csslctl sessions list` lists them",
		.run = command_sessions_show },
	{ "sessions count", .options = { SESSION_FILTERS }, .help = "how many sessions the agents hold",
		.manual = "Where the cluster file has no `replicas`, every agent holds all sessions that it heard of, "
			  "and the "
			  "number of the cluster is that of the fullest agent. With `replicas` each agent holds a "
			  "part, and "
			  "RAgent adds up what each agent answers for, so that a session counts once.",
		.run = command_sessions_count },
	{ "sessions revoke", .options = { SESSION_FILTERS, OPTION_ID, OPTION_ALL },
		.help = "let no agent resume these sessions any more",
		.manual =
			"Takes --id or --all alone, or any of the others: then it means the sessions that `sessions "
			"list` shows with the same options, and their like in tickets or on their way. An age or a "
			"cipher suite is that of the session itself, all else is the same in its whole family. Returns "
			"when every live agent has confirmed, with exit code 1 and their names when some have not.",
		.run = command_sessions_revoke },
	{ "keys rotate", .help = "let every agent make new sending and ticket keys", .run = command_keys_rotate },
	{ "reload", .help = "let every process read its certificates again and reopen its log", .run = command_reload },
	{ "log-level", { { "LEVEL", OPERAND_TEXT, OPERAND_OPTIONAL } }, { OPTION_NODE },
		.help = "from which level on processes log, or change it at run time",
		.manual = "LEVEL is debug, info, warning, error, or configured for that of the cluster file. A process "
			  "that starts anew, or replaces another, goes by the cluster file.",
		.remedy = "`csslctl status` lists the processes", .run = command_log_level },
	{ "counters", { { "PATTERN", OPERAND_TEXT, OPERAND_OPTIONAL } }, { OPTION_AGENT },
		.help = "what RAgent and every agent counted since their start",
		.manual = "PATTERN is a shell pattern or a part of a name. Counters that are zero everywhere are left "
			  "out "
			  "unless PATTERN names them. `latency_*` are RAgent's: how long changes of owner took, of all "
			  "and of each agent.",
		.run = command_counters },
	{ "top", .help = "a live view: rates per agent, each second; ends on q", .run = command_top },
	{ "token make", { { "NAME", OPERAND_TEXT, OPERAND_REQUIRED }, { "FILE", OPERAND_FILE, OPERAND_REQUIRED } },
		{ OPTION_ROLE }, .reach = WORKS_OFFLINE, .help = "a new token for the control API",
		.manual = "The token goes to FILE, for --token-file; standard output gets its line for the file that "
			  "`control_tokens` names, which `csslctl reload` reads again.",
		.run = command_token_make },
	{ "config check", { { "FILE", OPERAND_FILE, OPERAND_REQUIRED } }, .reach = WORKS_OFFLINE,
		.help = "read a cluster file as the daemons do and say all that is wrong with it",
		.run = command_config_check },
	{ "inspect", { { "FILE", OPERAND_FILE, OPERAND_REQUIRED } },
		{ OPTION_CONFIG, OPTION_AGENTS_KEY, OPTION_CONNECTION, OPTION_LISTENER, OPTION_KEPT },
		.reach = WORKS_OFFLINE,
		.help = "describe a SESS_OBJ or a sealed copy, and say whether an agent could import it",
		.manual = "A sealed copy opens with the agents' key and the connection id and listener it belongs to. "
			  "Key "
			  "material is never shown, only that it is there. Exit code 1: no agent could import it.",
		.run = command_inspect },
	{ "completion bash", .reach = WORKS_OFFLINE, .help = "a completion script for bash",
		.manual = "source <(csslctl completion bash)", .run = command_completion_bash },
	{ "completion agents", .help = "the names of the agents, for completion scripts",
		.run = command_completion_agents },
	{ "help", { { "COMMAND", OPERAND_COMMAND, OPERAND_OPTIONAL }, { "WORD", OPERAND_TEXT, OPERAND_OPTIONAL } },
		{ OPTION_MAN }, .reach = WORKS_OFFLINE, .help = "what there is, or what one command takes",
		.run = command_help },
};

#define COMMAND_COUNT (sizeof rows / sizeof rows[0])

const struct command *commands(size_t *count)
{
	*count = COMMAND_COUNT;
	return rows;
}

const struct command *command_find(const char *name, size_t name_len)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strlen(rows[i].name) == name_len && strncmp(rows[i].name, name, name_len) == 0)
			return &rows[i];
	return NULL;
}

int command_takes(const struct command *c, enum option option)
{
	if (option_row(option)->scope == OPTION_COMMON)
		return 1;
	for (unsigned i = 0; i < COMMAND_OPTIONS_MAX && c->options[i] != OPTION_NONE; i++)
		if (c->options[i] == option)
			return 1;
	return 0;
}

const char *command_like(const char *word)
{
	struct nearest nearest = NEAREST_TO(word);

	for (size_t i = 0; i < COMMAND_COUNT; i++)
		nearest_try(&nearest, rows[i].name);
	return nearest_found(&nearest);
}
