/* schema.c: the tables, from the leaves to the root; schema_listener.c has those of a listener. The order of rows is
 * the order in the manual and the order of loading: a row comes before those that inherit its value. */
#include "conf/schema.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/complaints.h"
#include "conf/rules.h"
#include "conf/schema_rows.h"

#define NODES_MAX    256
#define REPLICAS_MAX 8

const struct schema_word schema_switch_words[] = {
	{ "on", CONF_ON },
	{ "off", CONF_OFF },
	{ "true", CONF_ON },
	{ "false", CONF_OFF },
	{ NULL },
};

/* clang-format off: one row for each key, with its type and one sentence for the manual. */

static const struct schema_row log_rows[] = {
	LOG_ROWS,
	{ "connections", SCHEMA_WORD, FIELD(conf_log, connections),
		WORDS({ "sampled", CONF_LOG_SAMPLED }, { "all", CONF_LOG_ALL }, { "off", CONF_LOG_NONE }),
		.fallback = "sampled",
		.help = "the lines about ended client connections (of RAgents and of `direct` listeners), and about "
			"what agents told cut-off clients. all: each line, but for clients that close before their "
			"handshake (level debug); sampled: for each reason at most ten lines a second from each "
			"worker (of an agent: from the process), and the number of lines left out, but all lines in "
			"an `access_log`; off: only the lines of refusals" },
	{ NULL },
};

static const struct schema_row limits_rows[] = {
	{ "connections", SCHEMA_COUNT, FIELD(conf_limits, connections), .max = 16e6, .off = "off", DERIVED,
		.help = "the most client connections of one process; the process closes a further connection at once. "
			"Derived: as many as fit into 1/16 of the memory of the machine, or of its control group" },
	{ "connections_per_source", SCHEMA_COUNT, FIELD(conf_limits, connections_per_source), RANGE(0, 16e6, "off"),
		.off = "off",
		.help = "the most client connections of one process from one client address, or one IPv6 /64; a /48 "
			"may have eight times as many" },
	{ "handshakes", SCHEMA_COUNT, FIELD(conf_limits, handshakes), .max = 1e6, .off = "off", DERIVED,
		.help = "the most handshakes under way on one worker, each counted from the client's hello to its "
			"end. A further handshake takes the place of a handshake of the source that has most, or is "
			"refused. Derived: as many as fit into 1/32 of the memory, at most 1024" },
	{ "handshakes_per_source", SCHEMA_COUNT, FIELD(conf_limits, handshakes_per_source), .max = 1e6, .off = "off",
		DERIVED,
		.help = "the most handshakes under way on one worker from one client address, or one IPv6 /64; a /48 "
			"may have eight times as many, but at most three quarters of `handshakes`. Derived: half of "
			"`handshakes`" },
	{ "preambles", SCHEMA_COUNT, FIELD(conf_limits, preambles), RANGE(0, 1e6, "4096"), .off = "off",
		.help = "service smtp: the most clients on one worker that have neither sent STARTTLS yet nor begun a "
			"mail in clear. A further client takes the place of a client of the source that has most, or "
			"gets 421" },
	{ "preambles_per_source", SCHEMA_COUNT, FIELD(conf_limits, preambles_per_source), RANGE(0, 1e6, "1024"),
		.off = "off",
		.help = "service smtp: the most clients on one worker from one client address, or one IPv6 /64, that "
			"have neither sent STARTTLS yet nor begun a mail in clear; a /48 may have eight times as many, "
			"but at most three quarters of `preambles`" },
	{ "kept", SCHEMA_SIZE, FIELD(conf_limits, kept_len), .min = 1 * MIB, .max = 1 * TIB, .off = "off", DERIVED,
		.help = "the most bytes that one process keeps for connections: bytes not consumed yet, bytes kept to "
			"ask a backend again, and bytes that a client or a backend has not taken. Above that, the "
			"connection that keeps most can no longer ask again, or ends. Derived: 1/16 of the memory" },
	{ "handshake_timeout", SCHEMA_DURATION_MS, FIELD(conf_limits, handshake_timeout_ms),
		RANGE(100 * MS, 600 * S, "10s"),
		.help = "a client whose TLS handshake takes longer, from accept to its end, is closed" },
	{ "request_head_timeout", SCHEMA_DURATION_MS, FIELD(conf_limits, request_head_timeout_ms),
		RANGE(100 * MS, 600 * S, "20s"), .off = "off",
		.help = "services http and h2: a request whose head takes longer, from its first byte to its end, gets "
			"408 or GOAWAY, and the connection ends" },
	{ "agent_wait", SCHEMA_DURATION_MS, FIELD(conf_limits, agent_wait_ms), RANGE(100 * MS, 600 * S, "5s"),
		.off = "off",
		.help = "how long a new client waits when no agent takes connections; then the client gets a fatal "
			"alert. off: the client gets the alert at once" },
	{ "idle_timeout", SCHEMA_DURATION_MS, FIELD(conf_limits, idle_timeout_ms), RANGE(1 * S, 7 * D * S, "5min"),
		.off = "off",
		.help = "a connection without a byte in either direction ends after this time; with service smtp "
			"later, if a client waits for the reply to the end of a mail (`end_timeout` of the listener)" },
	{ "doze_after", SCHEMA_DURATION_MS, FIELD(conf_limits, doze_after_ms), RANGE(50 * MS, 600 * S, "5s"),
		.off = "off",
		.help = "after this silence of a client, RAgent gives back the memory that only a busy connection "
			"needs, and takes it again when something comes, which costs a few microseconds" },
	{ "backend_connect_timeout", SCHEMA_DURATION_MS, FIELD(conf_limits, backend_connect_timeout_ms),
		RANGE(10 * MS, 600 * S, "5s"), .help = "how long an agent waits for a backend to accept" },
	{ "window", SCHEMA_SIZE, FIELD(conf_limits, window_len), RANGE(CONF_WINDOW_MIN, 16 * MIB, "64KiB"),
		.help = "the most bytes under way on a link for one connection and direction; larger for large "
			"transfers over long distances" },
	{ "replay", SCHEMA_SIZE, FIELD(conf_limits, replay_len), RANGE(0, 1 * MIB, "64KiB"),
		.help = "RAgent keeps at most so many bytes of a request or mail until the answer comes. If the agent "
			"is lost, another agent can repeat only what RAgent kept whole" },
	{ NULL },
};
static const struct schema_map limits_map = { limits_rows };

static const struct schema_row health_rows[] = {
	{ "ping", SCHEMA_DURATION_MS, FIELD(conf_health, ping_ms), RANGE(10 * MS, 60 * S, "200ms"),
		.help = "each side of a link asks the other this often for a sign of life" },
	{ "suspect", SCHEMA_DURATION_MS, FIELD(conf_health, suspect_ms), RANGE(20 * MS, 600 * S, "1s"),
		.help = "after this silence of a link, its agent gets no new connection" },
	{ "lost", SCHEMA_DURATION_MS, FIELD(conf_health, lost_ms), RANGE(30 * MS, 600 * S, "3s"),
		.help = "after this silence, a link is lost, and other agents take over its connections" },
	{ NULL },
};
static const struct schema_map health_map = { health_rows, rules_health };

static const struct schema_row moves_rows[] = {
	{ "takeovers_per_second", SCHEMA_COUNT, FIELD(conf_moves, takeovers_per_s), RANGE(0, 1e6, "5000"), .off = "off",
		.help = "at most so many connections of lost agents go to other agents in a second" },
	{ "rebalances_per_second", SCHEMA_COUNT, FIELD(conf_moves, rebalances_per_s), RANGE(0, 1e6, "500"),
		.off = "off",
		.help = "after agents joined or weights changed, at most so many connections move in a second" },
	{ "drain_timeout", SCHEMA_DURATION_MS, FIELD(conf_moves, drain_timeout_ms), RANGE(100 * MS, 24 * H * S, "30s"),
		.help = "a connection that has not left a draining agent after this time ends" },
	{ NULL },
};
static const struct schema_map moves_map = { moves_rows };

static const struct schema_row store_rows[] = {
	{ "size", SCHEMA_SIZE, FIELD(conf_store, bytes), RANGE(1 * MIB, 1 * TIB, "256MiB"),
		.help = "memory for sessions on each agent; --check prints for how long sessions fit. Without this key "
			"at most 1/8 of the machine's memory" },
	{ "per_source_percent", SCHEMA_COUNT, FIELD(conf_store, per_source_percent), RANGE(1, 100, "25"),
		.help = "the largest part of the store for the sessions of one client address" },
	{ "family_lifetime", SCHEMA_DURATION_S, FIELD(conf_store, family_lifetime_s), RANGE(60, 30 * D, "1d"),
		.help = "a session, and each session that was resumed from it, can be resumed for so long after the "
			"full handshake" },
	{ NULL },
};

static const struct schema_row broadcast_rows[] = {
	{ "live", SCHEMA_WORD, FIELD(conf_broadcast, live),
		WORDS({ "broadcast", CONF_LIVE_BROADCAST }, { "carried", CONF_LIVE_CARRIED }), .fallback = "broadcast",
		.help = "broadcast: the live keys of connections go to all agents; carried: only in the sealed copy "
			"that RAgent keeps" },
	{ "live_keep", SCHEMA_DURATION_S, FIELD(conf_broadcast, live_keep_s), RANGE(1, 1 * H, "60s"),
		.help = "how long agents keep the live keys of a lost agent for a takeover" },
	{ "remember", SCHEMA_DURATION_S, FIELD(conf_broadcast, remember_s), RANGE(10, 1 * D, "10min"),
		.help = "how long agents remember an ended connection, so that nobody can make agents continue the "
			"connection. This memory takes a quarter of the store's size, in addition to the store" },
	{ "heartbeat", SCHEMA_DURATION_MS, FIELD(conf_broadcast, heartbeat_ms), RANGE(5 * MS, 10 * S, "100ms"),
		.help = "agents tell each other this often how many objects they sent, so that receivers notice a loss "
			"and repair it" },
	{ "alone_after", SCHEMA_DURATION_MS, FIELD(conf_broadcast, alone_after_ms), RANGE(10 * MS, 600 * S, "1s"),
		.help = "a starting agent that reaches no other agent serves alone after this time" },
	{ "replicas", SCHEMA_COUNT, FIELD(conf_broadcast, replicas), RANGE(1, REPLICAS_MAX, "all"), .off = "all",
		.help = "how many agents hold a session, beside the agent that made the session; other agents ask for "
			"the session when they need it. A number saves memory and traffic in large clusters" },
	{ "left_after", SCHEMA_DURATION_MS, FIELD(conf_broadcast, left_ms), RANGE(100 * MS, 1 * H * S, "10s"),
		.help = "with `replicas`: after this absence of an agent, other agents take over its sessions" },
	{ "ring", SCHEMA_COUNT, FIELD(conf_broadcast, ring), RANGE(64, 1048576, "8192"),
		.help = "how many objects each worker keeps, to send them again to an agent that missed them" },
	{ "park", SCHEMA_DURATION_MS, FIELD(conf_broadcast, park_ms), RANGE(1 * MS, 10 * S, "100ms"),
		.help = "the longest wait of a handshake for a session that has not come yet" },
	{ "parked_max", SCHEMA_COUNT, FIELD(conf_broadcast, parked_max), RANGE(0, 65536, "256"),
		.help = "how many handshakes of a worker may wait for a session that has not come yet; each takes 76 "
			"KB" },
	{ "key_lifetime", SCHEMA_DURATION_S, FIELD(conf_broadcast, key_lifetime_s), RANGE(10, 7 * D, "1h"),
		.help = "an agent makes new sending and ticket keys this often" },
	{ NULL },
};

static const struct schema_row ragent_rows[] = {
	{ "name", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(conf_ragent, name), .unique = SCHEMA_ONCE_A_NODE,
		.help = "the name for the option --name of ragent" },
	{ "workers", SCHEMA_COUNT, FIELD(conf_ragent, workers), RANGE(1, 256, "1"),
		.help = "the number of threads, each with its own loop, listening sockets and links" },
	{ "control", SCHEMA_SOCKET_PATH, FIELD(conf_ragent, control),
		.help = "UNIX socket of the control API, mode 0600; without this key there is none" },
	{ "control_address", SCHEMA_ADDRESS, FIELD(conf_ragent, control_address), .unique = SCHEMA_ONCE_A_SOCKET,
		.help = "loopback address, or UNIX socket (mode 0660), of the control API for clients with a token; "
			"put a listener with TLS in front of it" },
	{ "control_proxy_protocol", SCHEMA_WORD, FIELD(conf_ragent, control_proxy_protocol), SWITCHES,
		.fallback = "off",
		.help = "connections to control_address begin with a PROXY header: needed if a backend with proxy_v2 "
			"leads there" },
	{ "control_tokens", SCHEMA_PATH, FIELD(conf_ragent, control_tokens),
		.help = "file of the clients of control_address: lines `name role hash`, which csslctl token make "
			"writes; and, if control_address is a UNIX socket, lines `name role cn=COMMON NAME` for "
			"clients with a certificate that the listener in front has verified" },
	{ "mail_status", SCHEMA_SOCKET_PATH, FIELD(conf_ragent, mail_status),
		.help = "the UNIX socket `status` of a smtpproxy on this host, which this process asks for the "
			"dashboard and GET /v1/mail; without this key, dashboard and API show no smtpproxy" },
	{ "user", SCHEMA_NAME, FIELD(conf_ragent, user),
		.help = "a process started as root becomes this user (without this key: nobody). The user must not be "
			"able to read agents_key" },
	{ "access_log", SCHEMA_PATH, FIELD(conf_ragent, access_log),
		.help = "a file for all lines about ended connections (`log` tells which connections have a line). "
			"The process opens this file again at SIGHUP, so `user` must be able to create it. Without "
			"this key, these lines are among the other events" },
	{ "hang", SCHEMA_DURATION_MS, FIELD(conf_ragent, hang_ms), RANGE(1 * S, 600 * S, "5s"),
		.help = "when a thread makes no progress for so long, the keeper kills the process and starts the next "
			"process. Agents on other hosts keep the connections of a silent RAgent for `hang` and 5/6 of "
			"`health.lost`" },
	{ "limits", SCHEMA_MAP, SCHEMA_INHERITED, FIELD(conf_ragent, limits), .map = &limits_map,
		.inherits = offsetof(struct conf, limits),
		.help = "its own values, where they differ from the cluster's" },
	{ "health", SCHEMA_MAP, SCHEMA_INHERITED, FIELD(conf_ragent, health), .map = &health_map,
		.inherits = offsetof(struct conf, health),
		.help = "its own values, where they differ from the cluster's" },
	{ "moves", SCHEMA_MAP, SCHEMA_INHERITED, FIELD(conf_ragent, moves), .map = &moves_map,
		.inherits = offsetof(struct conf, moves),
		.help = "its own values, where they differ from the cluster's" },
	{ NULL },
};

static const struct schema_row direct_rows[] = {
	{ "address", SCHEMA_ADDRESS, SCHEMA_REQUIRED, FIELD(conf_direct, address), .unique = SCHEMA_ONCE_IN_LIST,
		.help = "the address to listen on; port 0: any free port" },
	{ "listener", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(conf_direct, listener), .refers_to = "listeners",
		.help = "certificates, TLS settings, service and backends come from this listener" },
	{ "proxy_protocol", SCHEMA_WORD, FIELD(conf_direct, proxy_protocol), SWITCHES, .fallback = "off",
		.help = "on: each connection begins with a PROXY header (v1 or v2) of the balancer in front" },
	{ "trusted", SCHEMA_ITEMS, ARRAY(conf_direct, trusted, trusted_count), .item = SCHEMA_NET, .max = ELEMENTS_MAX,
		.help = "networks of the balancers that may send a PROXY header" },
	{ NULL },
};

static const struct schema_row agent_rows[] = {
	{ "name", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(conf_agent, name), .unique = SCHEMA_ONCE_A_NODE,
		.help = "the name for the option --name of sslagent" },
	{ "workers", SCHEMA_COUNT, FIELD(conf_agent, workers), RANGE(1, 256, "1"),
		.help = "the number of threads, each with its own loop; every worker of every RAgent has a link to "
			"each thread" },
	{ "weight", SCHEMA_REAL, FIELD(conf_agent, weight), RANGE(0.01, 1000, "1"),
		.help = "the agent's share of clients, and of handshakes under all policies but round-robin" },
	{ "link", SCHEMA_ADDRESS, SCHEMA_REQUIRED, FIELD(conf_agent, link), .unique = SCHEMA_ONCE_A_SOCKET,
		.help = "the address to which RAgents connect" },
	{ "link_group", SCHEMA_NAME, FIELD(conf_agent, link_group),
		.help = "if `link` is a UNIX socket: the group that may connect to it, beside the agent's own user. "
			"Without this key, the group of RAgents' user" },
	{ "user", SCHEMA_NAME, FIELD(conf_agent, user),
		.help = "a process started as root becomes this user, with all its groups, when its sockets are open. "
			"Take one user for all agents of a host, but not RAgent's user. The user must be able to read "
			"what a reload reads: certificates, private keys, CRLs. Without this key the process stays "
			"root, and logs a warning" },
	{ "link_protection", SCHEMA_WORD, FIELD(conf_agent, link_protection),
		WORDS({ "sealed", LINK_SEALED }, { "trusted", LINK_TRUSTED }), .fallback = "sealed",
		.help = "sealed: encrypted; trusted: authenticated when the link opens, but not encrypted, for links "
			"within one host" },
	{ "link_bytes", SCHEMA_WORD, FIELD(conf_agent, link_bytes),
		WORDS({ "memory", LINK_BYTES_IN_MEMORY }, { "socket", LINK_BYTES_ON_SOCKET }), .fallback = "memory",
		.help = "how a link over a UNIX socket carries bytes. memory: in memory that RAgent and agent share, "
			"which costs least; socket: on the socket" },
	{ "trusted_because", SCHEMA_STRING, FIELD(conf_agent, trusted_because),
		.help = "allows a trusted link that leaves the host; the value is the reason, in words for other "
			"operators" },
	{ "peer", SCHEMA_ADDRESS, SCHEMA_REQUIRED, FIELD(conf_agent, peer), .unique = SCHEMA_ONCE_A_SOCKET,
		.help = "IP address and port to which other agents send the broadcast (UDP) and connect (TCP)" },
	{ "peer_socket", SCHEMA_SOCKET_PATH, FIELD(conf_agent, peer_socket), .unique = SCHEMA_ONCE_A_SOCKET,
		.help = "UNIX socket for other agents of this host: with it, a backend connection can move together "
			"with its client's connection" },
	{ "backend_source", SCHEMA_HOST, FIELD(conf_agent, backend_source),
		.help = "local address for connections to backends" },
	{ "access_log", SCHEMA_PATH, FIELD(conf_agent, access_log),
		.help = "a file for all lines about ended connections of `direct` (`log` tells which connections have "
			"a line), opened again at SIGHUP. Without this key, these lines are among the other events" },
	{ "direct", SCHEMA_LIST, ARRAY(conf_agent, direct, direct_count), .max = ELEMENTS_MAX,
		MAP(direct_rows, rules_direct),
		.help = "TLS listeners of the agent itself, without RAgent: for clients, or behind another balancer" },
	{ NULL },
};

static const struct schema_row certificate_rows[] = {
	{ "name", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(conf_certificate, name), .unique = SCHEMA_ONCE_IN_LIST,
		.help = "the name that other keys of this file use" },
	{ "chain", SCHEMA_PATH, SCHEMA_REQUIRED, FIELD(conf_certificate, chain),
		.help = "PEM: the certificate, then its intermediates" },
	{ "key", SCHEMA_PATH, SCHEMA_REQUIRED, FIELD(conf_certificate, key),
		.help = "PEM: the certificate's private key, which others must not be able to read" },
	{ NULL },
};

static const struct schema_row backend_rows[] = {
	{ "name", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(conf_backend, name), .unique = SCHEMA_ONCE_IN_LIST,
		.help = "the name that other keys of this file use" },
	{ "address", SCHEMA_ADDRESS, SCHEMA_REQUIRED, FIELD(conf_backend, address),
		.help = "the address to which agents connect" },
	{ "proxy_v2", SCHEMA_WORD, FIELD(conf_backend, proxy_v2), SWITCHES, .fallback = "off",
		.help = "on: agents tell the backend the client's address and TLS facts in a PROXY v2 header" },
	{ "proxy_v2_max", SCHEMA_SIZE, FIELD(conf_backend, proxy_v2_len), RANGE(536, PROXY_V2_WRITE_MAX, "536B"),
		.help = "the longest PROXY v2 header that the backend takes; agents leave out values that do not fit, "
			"the client's certificate first (proxy_values_left_out). Postfix takes 536 bytes, nginx as "
			"many as `client_header_buffer_size` (1 KiB) and at most 4 KiB, RAgents, `direct` listeners "
			"and smtpproxy 4,112 bytes" },
	{ "reuse", SCHEMA_WORD, FIELD(conf_backend, reuse), SWITCHES, .fallback = "off",
		.help = "on: after an answer, another client's request may use the connection (service http, without "
			"proxy_v2)" },
	{ NULL },
};

static const struct schema_row cluster_rows[] = {
	{ "link_key", SCHEMA_PATH, SCHEMA_REQUIRED, FIELD(conf, link_key),
		.help = "key file of the links between RAgents and agents: lines `id key` (key: 64 hex digits). "
			"RAgents use the first key; agents accept all keys" },
	{ "agents_key", SCHEMA_PATH, SCHEMA_REQUIRED, FIELD(conf, agents_key),
		.help = "key file of the agents, with such lines; RAgent must not be able to read the file" },
	{ "own_provider", SCHEMA_WORD, FIELD(conf, own_provider), SWITCHES, .fallback = "on",
		.help = "on: handshakes use the agent's own HMAC, key schedules and X25519 (libsodium's); off: those "
			"of OpenSSL, which cost more" },
	{ "log", SCHEMA_MAP, FIELD(conf, log), MAP(log_rows), .help = "of every process" },
	{ "limits", SCHEMA_MAP, FIELD(conf, limits), .map = &limits_map, .help = "of every process" },
	{ "health", SCHEMA_MAP, FIELD(conf, health), .map = &health_map, .help = "of every link" },
	{ "moves", SCHEMA_MAP, FIELD(conf, moves), .map = &moves_map, .help = "of every RAgent" },
	{ "store", SCHEMA_MAP, FIELD(conf, store), MAP(store_rows),
		.help = "the sessions that can be resumed; each agent holds all of the cluster, or its part of them "
			"(`replicas`)" },
	{ "broadcast", SCHEMA_MAP, FIELD(conf, broadcast), MAP(broadcast_rows, rules_broadcast),
		.help = "how agents share sessions and live keys" },
	{ "ragents", SCHEMA_LIST, ARRAY(conf, ragents, ragent_count), .max = NODES_MAX, MAP(ragent_rows, rules_ragent),
		.help = "the processes that hold clients' TCP connections and no keys" },
	{ "agents", SCHEMA_LIST, SCHEMA_REQUIRED, ARRAY(conf, agents, agent_count), .max = NODES_MAX,
		MAP(agent_rows, rules_agent), .help = "the processes that hold the keys and speak TLS" },
	{ "certificates", SCHEMA_LIST, SCHEMA_REQUIRED, ARRAY(conf, certificates, certificate_count),
		.max = ELEMENTS_MAX, MAP(certificate_rows),
		.help = "certificates with their keys, on the agents' hosts" },
	{ "backends", SCHEMA_LIST, SCHEMA_REQUIRED, ARRAY(conf, backends, backend_count), .max = ELEMENTS_MAX,
		MAP(backend_rows), .help = "the servers behind the agents; they get plaintext" },
	{ "listeners", SCHEMA_LIST, SCHEMA_REQUIRED, ARRAY(conf, listeners, listener_count), .max = ELEMENTS_MAX,
		MAP(schema_listener_rows, rules_listener), .help = "the addresses and settings for clients" },
	{ NULL },
};

/* clang-format on */

const struct schema_map schema_cluster = { cluster_rows, rules_cluster };

const struct schema_row *schema_find(const struct schema_map *map, const char *key)
{
	for (const struct schema_row *row = map->rows; row->key; row++)
		if (strcmp(row->key, key) == 0)
			return row;
	return NULL;
}

const char *schema_nearest(const struct schema_map *map, const char *key)
{
	struct nearest nearest = NEAREST_TO(key);
	for (const struct schema_row *row = map->rows; row->key; row++)
		nearest_try(&nearest, row->key);
	return nearest_found(&nearest);
}

static bool is_string(enum schema_type type)
{
	return type == SCHEMA_NAME || type == SCHEMA_STRING || type == SCHEMA_PATH || type == SCHEMA_SOCKET_PATH;
}

static void free_array(const struct schema_row *row, char *object)
{
	char *at;
	size_t count;
	memcpy(&at, object + row->offset, sizeof at);
	memcpy(&count, object + row->count_offset, sizeof count);
	for (size_t i = 0; i < count; i++) {
		char *string, *element = at + i * row->item_size;
		if (row->map) {
			schema_free(row->map, element);
		} else if (is_string(row->item)) {
			memcpy(&string, element, sizeof string);
			free(string);
		}
	}
	free(at);
}

void schema_free(const struct schema_map *map, void *object)
{
	for (const struct schema_row *row = map->rows; row->key; row++) {
		char *field = (char *)object + row->offset, *string;
		if (row->type == SCHEMA_MAP) {
			schema_free(row->map, field);
		} else if (row->type == SCHEMA_ITEMS || row->type == SCHEMA_LIST) {
			free_array(row, object);
		} else if (is_string(row->type)) {
			memcpy(&string, field, sizeof string);
			free(string);
		}
	}
}
