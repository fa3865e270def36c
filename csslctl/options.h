/* options.h: every option of csslctl, one table. The common ones go with every command. */
#ifndef CSSL_CSSLCTL_OPTIONS_H
#define CSSL_CSSLCTL_OPTIONS_H

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
		"drain: connections that are left then end (30s; default: moves.drain_timeout); wait no longer")       \
	X(FOR, "for", "TIME", OF_COMMAND, "so long, such as 2h, and at most 30d (default: until `unblock`)")           \
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

#endif
