/* commands.c: the tables of commands and options, and the search for a name in them. */
#include <string.h>

#include "conf/complaints.h"
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
	{ "status", .help = "the cluster at a glance: RAgent, its agents, its listeners", .path = "/v1/status",
		.show = show_status },
	{ "health", .help = "is RAgent ready: does an agent serve, and reach a backend? Exit code 0, 1 (no) or 3",
		.path = "/readyz", .show = show_ready },
	{ "listeners", .help = "all listeners: connections, handshakes, refusals, bytes",
		.manual =
			"The counts begin with RAgent's start, and go on when a new RAgent replaces it. REFUSED counts "
			"connections that RAgent ended before a handshake began: a limit, a PROXY header, not TLS. "
			"--json also prints policies and addresses.",
		.path = "/v1/listeners", .list = "listeners", .columns = listener_columns },
	{ "certificates", .help = "the certificates that the agents have loaded, and when they end",
		.manual = "If an agent has some hundreds of certificates, csslctl shows those that end first.",
		.remedy = LIST_AGENTS, .path = "/v1/certificates", .list = "certificates",
		.columns = certificate_columns },
	{ "starttls", .help = "mail before STARTTLS, after STARTTLS and in clear: what happens, and what was refused",
		.manual = "The numbers are sums of RAgent and all agents, since their starts.", .path = "/v1/counters",
		.show = show_starttls },
	{ "agents", .options = { OPTION_WAIT, OPTION_TIMEOUT },
		.help = "all agents: state, load, version, clock, drain",
		.manual = "A `ready` agent serves; `no backend`: none of its backends answers; `!`: a backend does "
			  "not answer. CLOCK is the agent's time of day minus RAgent's. With --wait, returns when all "
			  "agents are ready; exit code 1: not within --timeout (1min).",
		.run = command_agents, .path = "/v1/agents", .list = "agents", .columns = agent_columns },
	{ "agent", { AGENT_OPERAND }, .help = "one agent", .remedy = LIST_AGENTS, .path = "/v1/agents/{}",
		.show = show_agent },
	{ "connections show", { CONNECTION_OPERAND }, .help = "one connection, and who owned it before",
		.manual = "The same as `connection`.", .remedy = LIST_CONNECTIONS, .run = command_connection },
	{ "connections end", { { "ID", OPERAND_TEXT, OPERAND_OPTIONAL } },
		{ OPTION_AGENT, OPTION_LISTENER, OPTION_CLIENT },
		.help = "end one connection, or all connections that match",
		.manual = "A connection ends as after a long idle time: in order at a checkpoint, else by an alert, in "
			  "mail by 421. A connection that moves, or is in its handshake, is reset; csslctl does not "
			  "count a connection that ends already.",
		.remedy = LIST_CONNECTIONS, .run = command_end },
	{ "block", { { "NETWORK", OPERAND_TEXT, OPERAND_REQUIRED } }, { OPTION_FOR },
		.help = "reset the clients of an address or network, and keep them out",
		.manual = "The block holds at this RAgent and at agents' own listeners, also after RAgent's death and "
			  "`--replace`. Each RAgent has a list of its own. Exit code 1: csslctl prints the agents that "
			  "do not know of the block yet.",
		.run = command_block },
	{ "unblock", { { "NETWORK", OPERAND_TEXT, OPERAND_REQUIRED } }, .help = "let these clients in again",
		.remedy = "`csslctl blocks` lists them", .run = command_block },
	{ "blocks", .help = "the blocked networks, and when each block ends", .path = "/v1/blocks", .list = "blocks",
		.columns = block_columns },
	{ "connections", .options = { OPTION_AGENT, OPTION_LISTENER, OPTION_CLIENT, OPTION_LIMIT },
		.help = "the client connections and their owners",
		.remedy = "`csslctl status` lists agents and listeners", .run = command_connections,
		.path = "/v1/connections", .list = "connections", .columns = connection_columns },
	{ "connection", { CONNECTION_OPERAND }, .help = "one connection",
		.manual = "ID is a connection id or a unique beginning of one.", .remedy = LIST_CONNECTIONS,
		.run = command_connection },
	{ "move", { CONNECTION_OPERAND, { "AGENT", OPERAND_AGENT, OPERAND_REQUIRED } },
		.help = "give a connection to another agent",
		.manual = "Returns when the move has ended. The client notices nothing. If the move is refused, "
			  "the connection stays at its agent.",
		.remedy = "`csslctl connections` and `csslctl agents` list them", .run = command_move },
	{ "rest", { CONNECTION_OPERAND }, .help = "take a connection off its agent until its next record",
		.remedy = LIST_CONNECTIONS, .run = command_rest },
	{ "drain", { AGENT_OPERAND }, { OPTION_TIMEOUT, OPTION_WAIT },
		.help = "empty an agent: it gets no new connections, and its connections move to other agents",
		.manual =
			"Idle connections leave at once, others at their next checkpoint. RAgent ends connections that "
			"are still there after --timeout. The agent gets no connections until `undrain`. With --wait "
			"the exit code is 1 if connections had to end. The drain goes on when the wait is interrupted.",
		.remedy = LIST_AGENTS, .run = command_drain },
	{ "undrain", { AGENT_OPERAND }, .help = "let a drained agent take connections again", .remedy = LIST_AGENTS,
		.method = ORDERS, .path = "/v1/agents/{}/undrain", .show = show_undrained },
	{ "weight", { AGENT_OPERAND, { "X", OPERAND_TEXT, OPERAND_REQUIRED } },
		.help = "change an agent's share of handshakes and clients",
		.manual = "RAgent's next start uses the weight of the cluster file again.", .remedy = LIST_AGENTS,
		.run = command_weight },
	{ "sessions list", .options = { SESSION_FILTERS, OPTION_LIMIT }, .help = "sessions that the agents can resume",
		.manual = "RAgent asks the agent that holds most sessions, or all agents if the cluster file has "
			  "`replicas`. Hits are resumptions on the agent that answered for the session.",
		.run = command_sessions_list, .path = "/v1/sessions", .list = "sessions", .columns = session_columns },
	{ "sessions show", { { "SESSION", OPERAND_TEXT, OPERAND_REQUIRED } },
		.help = "one session, and which agents hold it", .remedy = "`csslctl sessions list` lists them",
		.path = "/v1/sessions/{}", .show = show_session },
	{ "sessions count", .options = { SESSION_FILTERS }, .help = "how many sessions the agents hold",
		.manual =
			"Without `replicas` in the cluster file, every agent holds all sessions that it heard of; the "
			"number of the cluster is that of the fullest agent. With `replicas` each agent holds a part, "
			"and RAgent adds up the sessions that each agent answers for, so each counts once.",
		.run = command_sessions_count },
	{ "sessions revoke", .options = { SESSION_FILTERS, OPTION_ID, OPTION_ALL },
		.help = "make sure that no agent resumes these sessions again",
		.manual = "Takes --id or --all alone, or any of the other options. The other options select the "
			  "sessions that `sessions list` shows with the same options, and such sessions in tickets or "
			  "still on their way. Age and cipher suite are those of the session itself; the other facts "
			  "are the same in a whole family. Returns when every live agent has confirmed. If some agents "
			  "have not, csslctl prints their names, and the exit code is 1.",
		.run = command_sessions_revoke },
	{ "keys rotate", .help = "all agents make new sending keys and ticket keys", .method = ORDERS,
		.path = "/v1/keys/rotate", .show = show_nodes },
	{ "reload", .help = "RAgent and agents reopen logs, and read certificates and tokens again", .method = ORDERS,
		.path = "/v1/reload", .show = show_nodes },
	{ "log-level", { { "LEVEL", OPERAND_TEXT, OPERAND_OPTIONAL } }, { OPTION_NODE },
		.help = "show the log level of the processes, or change it at run time",
		.manual = "LEVEL is debug, info, warning or error, or `configured` for the level of the cluster file. "
			  "A process that starts, or replaces another process, uses the level of the cluster file.",
		.remedy = "`csslctl status` lists the processes", .run = command_log_level },
	{ "counters", { { "PATTERN", OPERAND_TEXT, OPERAND_OPTIONAL } }, { OPTION_AGENT },
		.help = "the counters of RAgent and of all agents since their start",
		.manual = "PATTERN is a shell pattern or a part of a name. Counters that are zero everywhere "
			  "are left out unless PATTERN names them. RAgent's `latency_*` tell how long changes "
			  "of owner took, in sum and for each agent.",
		.run = command_counters },
	{ "top", .help = "a live view of the rates of each agent, every second; q ends it", .run = command_top },
	{ "mail status", .reach = ASKS_MAIL, .help = "smtpproxy at a glance", .path = "/v1/status",
		.show = show_mail_status },
	{ "mail sessions", .reach = ASKS_MAIL, .help = "the connections of senders to smtpproxy",
		.path = "/v1/sessions", .list = "sessions", .columns = mail_sessions_columns },
	{ "mail senders", .reach = ASKS_MAIL, .help = "senders by their address, with their connections to smtpproxy",
		.path = "/v1/senders", .list = "senders", .columns = mail_senders_columns },
	{ "mail destinations", .reach = ASKS_MAIL, .help = "the receivers: connections, limits, and who waits",
		.manual = "LIMIT is the number of connections that the receiver takes, as far as it is known from "
			  "its refusals. WAIT is the mean time that a transaction waited for its turn.",
		.path = "/v1/destinations", .list = "destinations", .columns = mail_destinations_columns },
	{ "mail pools", .reach = ASKS_MAIL, .help = "the addresses that connections to receivers come from",
		.path = "/v1/pools", .list = "sources", .columns = mail_pools_columns },
	{ "mail hooks", .reach = ASKS_MAIL, .help = "the programs that judge mail, and how they answered",
		.path = "/v1/hooks", .list = "hooks", .columns = mail_hooks_columns },
	{ "mail queue",
		{ { "ACTION", OPERAND_TEXT, OPERAND_OPTIONAL }, { "OF", OPERAND_TEXT, OPERAND_OPTIONAL },
			{ "NUMBER", OPERAND_TEXT, OPERAND_OPTIONAL } },
		.reach = ASKS_MAIL, .help = "the queue of a mail gateway, and orders for its messages and destinations",
		.manual = "Without ACTION: the state of the queue, its Redis servers and destinations; for each "
			  "destination and backup: the backup's paths, whether the backup is in sync, and how many "
			  "changes (stores, new states, deletes) it has made for this destination. list: the messages, "
			  "oldest first; show MESSAGE: its sender, its recipients and their last replies; retry "
			  "MESSAGE: deliver it now; hold MESSAGE: deliver it not before release MESSAGE; delete "
			  "MESSAGE: without a notice to the sender; stop DESTINATION: deliver no more to it, until "
			  "start DESTINATION; rate DESTINATION NUMBER: at most so many messages a minute, 0: no limit. "
			  "The Redis servers keep stop, start and rate, so these orders count after a restart and at "
			  "the standby, too. takeover: own the queue although another gateway may have owned it "
			  "meanwhile.",
		.remedy = "`csslctl mail queue list` lists the messages", .run = command_mail_queue },
	{ "mail events", .options = { OPTION_FOLLOW }, .reach = ASKS_MAIL,
		.help = "the newest transactions and what became of them",
		.manual = "With --json one record a line, as in the file of `events`.", .run = command_mail_events },
	{ "token make", { { "NAME", OPERAND_TEXT, OPERAND_REQUIRED }, { "FILE", OPERAND_FILE, OPERAND_REQUIRED } },
		{ OPTION_ROLE }, .reach = WORKS_OFFLINE, .help = "a new token for the control API",
		.manual =
			"Writes the token to FILE, for --token-file. Prints its line for the file of `control_tokens`; "
			"RAgent reads that file again at `csslctl reload`.",
		.run = command_token_make },
	{ "config check", { { "FILE", OPERAND_FILE, OPERAND_REQUIRED } }, .reach = WORKS_OFFLINE,
		.help = "read a cluster file as the daemons do, and print all its faults",
		.run = command_config_check },
	{ "inspect", { { "FILE", OPERAND_FILE, OPERAND_REQUIRED } },
		{ OPTION_CONFIG, OPTION_AGENTS_KEY, OPTION_CONNECTION, OPTION_LISTENER, OPTION_KEPT },
		.reach = WORKS_OFFLINE,
		.help = "describe a SESS_OBJ or a sealed copy, and whether an agent could import it",
		.manual = "A sealed copy opens with the agents' key, and with the id and the listener of its "
			  "connection. csslctl never shows key material, only whether it is there. Exit code 1: no "
			  "agent could import the object.",
		.run = command_inspect },
	{ "completion bash", .reach = WORKS_OFFLINE, .help = "a completion script for bash",
		.manual = "source <(csslctl completion bash)", .run = command_completion_bash },
	{ "completion agents", .help = "the names of the agents, for completion scripts", .path = "/v1/status",
		.show = show_agent_names },
	{ "help", { { "COMMAND", OPERAND_COMMAND, OPERAND_OPTIONAL }, { "WORD", OPERAND_TEXT, OPERAND_OPTIONAL } },
		{ OPTION_MAN }, .reach = WORKS_OFFLINE, .help = "all commands, or the operands and options of one",
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

bool command_takes(const struct command *c, enum option option)
{
	if (option_row(option)->scope == OPTION_COMMON)
		return true;
	for (unsigned i = 0; i < COMMAND_OPTIONS_MAX && c->options[i] != OPTION_NONE; i++)
		if (c->options[i] == option)
			return true;
	return false;
}

const char *command_like(const char *word)
{
	struct nearest nearest = NEAREST_TO(word);

	for (size_t i = 0; i < COMMAND_COUNT; i++)
		nearest_try(&nearest, rows[i].name);
	return nearest_found(&nearest);
}

/* --- options --- */

static const struct option_row option_rows[OPTION_COUNT] = {
#define X(NAME, name, value, scope, meaning) [OPTION_##NAME] = { name, value, OPTION_##scope, meaning },
	OPTIONS(X)
#undef X
};

const struct option_row *option_row(enum option option)
{
	return &option_rows[option];
}

enum option option_find(const char *name, unsigned long len)
{
	for (enum option o = OPTION_NONE + 1; o < OPTION_COUNT; o++)
		if (strlen(option_rows[o].name) == len && strncmp(option_rows[o].name, name, len) == 0)
			return o;
	return OPTION_NONE;
}
