/* schema.c: the tables, from the leaves to the root. Order within a table is the order of the manual, and the order of
 * loading: what others inherit stands before them. */
#include "conf/schema.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/nearest.h"
#include "conf/rules.h"

#define FIELD(type, member)        .offset = offsetof(struct type, member), .size = sizeof((struct type *)0)->member
#define ARRAY(type, member, count) FIELD(type, member), .count_offset = offsetof(struct type, count)
#define ELEMENTS_MAX               4096
#define NODES_MAX                  256
#define REPLICAS_MAX               8

#define MS       1.0
#define S        1000.0 /* in milliseconds */
#define H        3600.0
#define D        86400.0
#define KIB      1024.0
#define MIB      1048576.0
#define TIB      1099511627776.0
#define SWITCHES .words = switch_words
#define DERIVED  .derived = "derived", .fallback = "derived"

static const struct schema_word switch_words[] = {
	{ "on", CONF_ON },
	{ "off", CONF_OFF },
	{ "true", CONF_ON },
	{ "false", CONF_OFF },
	{ NULL },
};
static const struct schema_word migration_words[] = {
	{ "on", CONF_MIGRATION_ON },
	{ "off", CONF_MIGRATION_OFF },
	{ "true", CONF_MIGRATION_ON },
	{ "false", CONF_MIGRATION_OFF },
	{ NULL },
};
static const struct schema_word format_words[] = { { "text", LOG_TEXT }, { "json", LOG_JSON }, { NULL } };
static const struct schema_word level_words[] = {
	{ "debug", LOG_DEBUG },
	{ "info", LOG_INFO },
	{ "warning", LOG_WARNING },
	{ "error", LOG_ERROR },
	{ NULL },
};
static const struct schema_word log_connections_words[] = {
	{ "sampled", CONF_LOG_SAMPLED },
	{ "all", CONF_LOG_ALL },
	{ "off", CONF_LOG_NONE },
	{ NULL },
};
static const struct schema_word live_words[] = {
	{ "broadcast", CONF_LIVE_BROADCAST },
	{ "carried", CONF_LIVE_CARRIED },
	{ NULL },
};
static const struct schema_word protection_words[] = {
	{ "sealed", LINK_SEALED },
	{ "trusted", LINK_TRUSTED },
	{ NULL },
};
static const struct schema_word bytes_words[] = {
	{ "memory", LINK_BYTES_IN_MEMORY },
	{ "socket", LINK_BYTES_ON_SOCKET },
	{ NULL },
};
static const struct schema_word mode_words[] = { { "sf", CONF_SF }, { "sl", CONF_SL }, { NULL } };
static const struct schema_word policy_words[] = {
	{ "round-robin", CONF_ROUND_ROBIN },
	{ "weighted", CONF_WEIGHTED },
	{ "least-connections", CONF_LEAST_CONNECTIONS },
	{ "shortest-response", CONF_SHORTEST_RESPONSE },
	{ "local", CONF_LOCAL },
	{ NULL },
};
static const struct schema_word service_words[] = {
#define X(id, name, ...) { name, CONF_##id },
	CONF_SERVICES(X)
#undef X
		{ NULL },
};
#define SERVICE_HELP(id, name, rest, loss, first, ends, following, start, help) "; " name ": " help
static const struct schema_word starttls_words[] = {
	{ "require", SMTP_TLS_REQUIRE },
	{ "offer", SMTP_TLS_OFFER },
	{ "implicit", SMTP_TLS_IMPLICIT },
	{ NULL },
};
static const struct schema_word agent_loss_words[] = { { "close", CONF_CLOSE }, { "reconnect", CONF_RECONNECT },
	{ NULL } };
static const struct schema_word version_words[] = { { "1.2", 0x0303 }, { "1.3", 0x0304 }, { NULL } };
static const struct schema_word extended_master_secret_words[] = {
	{ "required", CONF_EMS_REQUIRED },
	{ "optional", CONF_EMS_OPTIONAL },
	{ NULL },
};
static const struct schema_word client_certificate_words[] = {
	{ "none", CONF_CLIENT_CERT_NONE },
	{ "optional", CONF_CLIENT_CERT_OPTIONAL },
	{ "required", CONF_CLIENT_CERT_REQUIRED },
	{ NULL },
};

/* clang-format off: one row, one statement of what the key is and one sentence for the manual. */

static const struct schema_row log_rows[] = {
	{ "format", SCHEMA_WORD, FIELD(conf_log, format), .words = format_words, .fallback = "text",
		.help = "one line per event, for people or as JSON" },
	{ "level", SCHEMA_WORD, FIELD(conf_log, level), .words = level_words, .fallback = "info",
		.help = "the least important events that are written" },
	{ "connections", SCHEMA_WORD, FIELD(conf_log, connections), .words = log_connections_words,
		.fallback = "sampled",
		.help = "the line of RAgent for each client connection that ended: all of them, none (off), or of each "
			"reason ten a second of each worker, and how many were left out (sampled)" },
	{ "path", SCHEMA_PATH, FIELD(conf_log, path),
		.help = "file to append to, opened again at SIGHUP; without it lines go to standard error" },
	{ NULL },
};

static const struct schema_row limits_rows[] = {
	{ "connections", SCHEMA_COUNT, FIELD(conf_limits, connections), .max = 16e6, .off = "off", DERIVED,
		.help = "client connections of one process; a further one is closed at once. Derived: what fits into "
			"a "
			"sixteenth of the machine's memory, or of its control group's" },
	{ "connections_per_source", SCHEMA_COUNT, FIELD(conf_limits, connections_per_source), .max = 16e6, .off = "off",
		.fallback = "off",
		.help = "the same for one client address, or one IPv6 /64; a /48 may have eight times as many" },
	{ "handshakes", SCHEMA_COUNT, FIELD(conf_limits, handshakes), .max = 1e6, .off = "off", DERIVED,
		.help = "handshakes under way on one worker, from the client's hello to the end of the handshake; a "
			"further one takes the place of one of the source that has most, or is refused. Derived: what "
			"fits "
			"into a thirty-second part of the memory, at most 1024" },
	{ "handshakes_per_source", SCHEMA_COUNT, FIELD(conf_limits, handshakes_per_source), .max = 1e6, .off = "off",
		DERIVED,
		.help = "the same for one client address; an IPv6 /48 may have eight times as many. Derived: half "
			"of `handshakes`" },
	{ "preambles", SCHEMA_COUNT, FIELD(conf_limits, preambles), .max = 1e6, .off = "off", .fallback = "4096",
		.help = "service smtp: clients on one worker that have not said STARTTLS yet; a further one takes the "
			"place "
			"of one of the source that has most, or is refused by 421" },
	{ "preambles_per_source", SCHEMA_COUNT, FIELD(conf_limits, preambles_per_source), .max = 1e6, .off = "off",
		.fallback = "1024",
		.help = "the same for one client address; an IPv6 /48 may have eight times as many" },
	{ "kept", SCHEMA_SIZE, FIELD(conf_limits, kept_len), .min = 1 * MIB, .max = 1 * TIB, .off = "off", DERIVED,
		.help = "bytes that one process keeps for connections: not consumed yet, or to ask again, or not taken "
			"by a "
			"client or a backend. Beyond that the connection that keeps most cannot ask again any more, or "
			"ends. "
			"Derived: a sixteenth of the memory" },
	{ "handshake_timeout", SCHEMA_DURATION_MS, FIELD(conf_limits, handshake_timeout_ms), .min = 100 * MS,
		.max = 600 * S, .fallback = "10s", .help = "from accept to the end of the TLS handshake" },
	{ "request_head_timeout", SCHEMA_DURATION_MS, FIELD(conf_limits, request_head_timeout_ms), .min = 100 * MS,
		.max = 600 * S, .off = "off", .fallback = "20s",
		.help = "service http: from the first byte of a request to the end of its head; after that it is "
			"answered "
			"with 408 and the connection ends" },
	{ "agent_wait", SCHEMA_DURATION_MS, FIELD(conf_limits, agent_wait_ms), .min = 100 * MS, .max = 600 * S,
		.off = "off", .fallback = "5s",
		.help = "so long a new client waits while no agent takes anything; then, or with off at once, it is "
			"reset" },
	{ "idle_timeout", SCHEMA_DURATION_MS, FIELD(conf_limits, idle_timeout_ms), .min = 1 * S, .max = 7 * D * S,
		.off = "off", .fallback = "5min",
		.help = "a connection on which nothing moves either way is ended after this time" },
	{ "doze_after", SCHEMA_DURATION_MS, FIELD(conf_limits, doze_after_ms), .min = 50 * MS, .max = 600 * S,
		.off = "off", .fallback = "5s",
		.help = "a client is silent for so long: RAgent gives back the memory that only a busy one needs, and "
			"takes it again, in a few microseconds, when something comes" },
	{ "backend_connect_timeout", SCHEMA_DURATION_MS, FIELD(conf_limits, backend_connect_timeout_ms), .min = 10 * MS,
		.max = 600 * S, .fallback = "5s", .help = "how long an agent waits for a backend to accept" },
	{ "window", SCHEMA_SIZE, FIELD(conf_limits, window_len), .min = 32 * KIB, .max = 16 * MIB, .fallback = "64KiB",
		.help = "bytes under way on a link, per connection and direction; more for bulk over long distances" },
	{ "replay", SCHEMA_SIZE, FIELD(conf_limits, replay_len), .max = 1 * MIB, .fallback = "64KiB",
		.help = "of a request that is not answered yet, so much is kept to ask again if its agent is lost" },
	{ NULL },
};
static const struct schema_map limits_map = { limits_rows, sizeof(struct conf_limits), -1 };

static const struct schema_row health_rows[] = {
	{ "ping", SCHEMA_DURATION_MS, FIELD(conf_health, ping_ms), .min = 10 * MS, .max = 60 * S, .fallback = "200ms",
		.help = "each side of a link asks the other this often whether its loop turns" },
	{ "suspect", SCHEMA_DURATION_MS, FIELD(conf_health, suspect_ms), .min = 20 * MS, .max = 600 * S,
		.fallback = "1s", .help = "silent for so long: nothing new goes there" },
	{ "lost", SCHEMA_DURATION_MS, FIELD(conf_health, lost_ms), .min = 30 * MS, .max = 600 * S, .fallback = "3s",
		.help = "silent for so long: the link is given up and its connections are taken over" },
	{ NULL },
};
static const struct schema_map health_map = { health_rows, sizeof(struct conf_health), -1, rules_health };

static const struct schema_row moves_rows[] = {
	{ "takeovers_per_second", SCHEMA_COUNT, FIELD(conf_moves, takeovers_per_s), .max = 1e6, .off = "off",
		.fallback = "5000", .help = "at most so many connections of a lost agent go to its successors" },
	{ "rebalances_per_second", SCHEMA_COUNT, FIELD(conf_moves, rebalances_per_s), .max = 1e6, .off = "off",
		.fallback = "500",
		.help = "after agents joined or weights changed, connections follow at most so fast" },
	{ "drain_timeout", SCHEMA_DURATION_MS, FIELD(conf_moves, drain_timeout_ms), .min = 100 * MS, .max = 24 * H * S,
		.fallback = "30s",
		.help = "a connection that could not leave a draining agent is ended after this time" },
	{ NULL },
};
static const struct schema_map moves_map = { moves_rows, sizeof(struct conf_moves), -1 };

static const struct schema_row store_rows[] = {
	{ "size", SCHEMA_SIZE, FIELD(conf_store, bytes), .min = 1 * MIB, .max = 1 * TIB, .fallback = "256MiB",
		.help = "memory for sessions on each agent; --check says what lifetime that means. Where the file is "
			"silent "
			"at most an eighth of the machine's memory" },
	{ "per_source_percent", SCHEMA_COUNT, FIELD(conf_store, per_source_percent), .min = 1, .max = 100,
		.fallback = "25", .help = "the largest part of it that the sessions of one client address may take" },
	{ "family_lifetime", SCHEMA_DURATION_S, FIELD(conf_store, family_lifetime_s), .min = 60, .max = 30 * D,
		.fallback = "1d",
		.help = "a chain of resumptions ends this long after the full handshake it began with" },
	{ NULL },
};

static const struct schema_row broadcast_rows[] = {
	{ "live", SCHEMA_WORD, FIELD(conf_broadcast, live), .words = live_words, .fallback = "broadcast",
		.help = "live keys go to all agents (broadcast), or only as the sealed copy that RAgent holds "
			"(carried)" },
	{ "live_keep", SCHEMA_DURATION_S, FIELD(conf_broadcast, live_keep_s), .min = 1, .max = 1 * H, .fallback = "60s",
		.help = "how long live keys of a lost agent are kept for a takeover" },
	{ "remember", SCHEMA_DURATION_S, FIELD(conf_broadcast, remember_s), .min = 10, .max = 1 * D,
		.fallback = "10min",
		.help = "how long agents remember a connection that ended, so that nobody can make them go on with it; "
			"they have a quarter of the store's size for that, on top of it" },
	{ "heartbeat", SCHEMA_DURATION_MS, FIELD(conf_broadcast, heartbeat_ms), .min = 5 * MS, .max = 10 * S,
		.fallback = "100ms",
		.help = "agents tell each other this often how much they sent, so that losses are seen and repaired" },
	{ "alone_after", SCHEMA_DURATION_MS, FIELD(conf_broadcast, alone_after_ms), .min = 10 * MS, .max = 600 * S,
		.fallback = "1s", .help = "a starting agent that reaches no other serves alone after this time" },
	{ "replicas", SCHEMA_COUNT, FIELD(conf_broadcast, replicas), .min = 1, .max = REPLICAS_MAX, .off = "all",
		.fallback = "all",
		.help = "how many agents hold a session besides the one that made it; the others ask for it when they "
			"need it. Spares large clusters memory and sending" },
	{ "left_after", SCHEMA_DURATION_MS, FIELD(conf_broadcast, left_ms), .min = 100 * MS, .max = 1 * H * S,
		.fallback = "10s",
		.help = "with replicas: what an agent held that is away for so long goes to others" },
	{ "ring", SCHEMA_COUNT, FIELD(conf_broadcast, ring), .min = 64, .max = 1048576, .fallback = "8192",
		.help = "objects each worker keeps to repair losses; a larger gap is closed by a snapshot" },
	{ "park", SCHEMA_DURATION_MS, FIELD(conf_broadcast, park_ms), .min = 1 * MS, .max = 10 * S, .fallback = "100ms",
		.help = "longest wait of a handshake for a session that has not arrived yet" },
	{ "parked_max", SCHEMA_COUNT, FIELD(conf_broadcast, parked_max), .max = 65536, .fallback = "256",
		.help = "handshakes per worker that may wait so; each takes 76 KB" },
	{ "key_lifetime", SCHEMA_DURATION_S, FIELD(conf_broadcast, key_lifetime_s), .min = 10, .max = 7 * D,
		.fallback = "1h", .help = "an agent makes new sending and ticket keys this often" },
	{ NULL },
};

static const struct schema_row ragent_rows[] = {
	{ "name", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(conf_ragent, name), .unique = SCHEMA_ONCE_A_NODE,
		.help = "what the process is started with: ragent --name" },
	{ "workers", SCHEMA_COUNT, FIELD(conf_ragent, workers), .min = 1, .max = 256, .fallback = "1",
		.help = "threads, each with its own loop, listening sockets and links" },
	{ "control", SCHEMA_SOCKET_PATH, FIELD(conf_ragent, control),
		.help = "UNIX socket of the control API, mode 0600; without it there is none" },
	{ "control_address", SCHEMA_ADDRESS, FIELD(conf_ragent, control_address), .unique = SCHEMA_ONCE_A_SOCKET,
		.help = "loopback address, or UNIX socket (mode 0660), of the control API for holders of a token; a "
			"listener "
			"in front of it speaks TLS" },
	{ "control_proxy_protocol", SCHEMA_WORD, FIELD(conf_ragent, control_proxy_protocol), SWITCHES,
		.fallback = "off",
		.help = "connections to control_address begin with a PROXY header, as a backend with proxy_v2 sends "
			"it" },
	{ "control_tokens", SCHEMA_PATH, FIELD(conf_ragent, control_tokens),
		.help = "who may use control_address: lines `name role hash`, made by csslctl token make; and lines "
			"`name role "
			"cn=COMMON NAME` for holders of a client certificate that the listener in front has verified, "
			"where "
			"control_address is a UNIX socket" },
	{ "user", SCHEMA_NAME, FIELD(conf_ragent, user),
		.help = "started as root, it becomes this user (nobody), who must not be able to read agents_key" },
	{ "access_log", SCHEMA_PATH, FIELD(conf_ragent, access_log),
		.help = "file for the lines of ended connections, which `log` says how many there are of; opened again "
			"at "
			"SIGHUP, so `user` must be able to create it; without it they are among the other events" },
	{ "limits", SCHEMA_MAP, SCHEMA_INHERITED, FIELD(conf_ragent, limits), .map = &limits_map,
		.inherits = offsetof(struct conf, limits), .help = "where they differ from the cluster's" },
	{ "health", SCHEMA_MAP, SCHEMA_INHERITED, FIELD(conf_ragent, health), .map = &health_map,
		.inherits = offsetof(struct conf, health), .help = "where it differs from the cluster's" },
	{ "moves", SCHEMA_MAP, SCHEMA_INHERITED, FIELD(conf_ragent, moves), .map = &moves_map,
		.inherits = offsetof(struct conf, moves), .help = "where they differ from the cluster's" },
	{ NULL },
};

static const struct schema_row direct_rows[] = {
	{ "address", SCHEMA_ADDRESS, SCHEMA_REQUIRED, FIELD(conf_direct, address), .unique = SCHEMA_ONCE_IN_LIST,
		.help = "where it listens; port 0 takes a free one" },
	{ "listener", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(conf_direct, listener), .refers_to = "listeners",
		.help = "the listener whose certificates, TLS settings, service and backends it has" },
	{ "proxy_protocol", SCHEMA_WORD, FIELD(conf_direct, proxy_protocol), SWITCHES, .fallback = "off",
		.help = "each connection begins with a PROXY header (v1 or v2) of the balancer in front" },
	{ "trusted", SCHEMA_ITEMS, ARRAY(conf_direct, trusted, trusted_count), .item = SCHEMA_NET,
		.item_size = sizeof(struct address_net), .max = ELEMENTS_MAX,
		.help = "networks from which a PROXY header is believed" },
	{ NULL },
};

static const struct schema_row agent_rows[] = {
	{ "name", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(conf_agent, name), .unique = SCHEMA_ONCE_A_NODE,
		.help = "what the process is started with: sslagent --name" },
	{ "workers", SCHEMA_COUNT, FIELD(conf_agent, workers), .min = 1, .max = 256, .fallback = "1",
		.help = "threads, each with its own loop; every worker of every RAgent has a link to each" },
	{ "weight", SCHEMA_REAL, FIELD(conf_agent, weight), .min = 0.01, .max = 1000, .fallback = "1",
		.help = "its share of handshakes under the policy `weighted`" },
	{ "link", SCHEMA_ADDRESS, SCHEMA_REQUIRED, FIELD(conf_agent, link), .unique = SCHEMA_ONCE_A_SOCKET,
		.help = "where RAgents connect to it" },
	{ "link_group", SCHEMA_NAME, FIELD(conf_agent, link_group),
		.help = "where `link` is a UNIX socket: the group that may connect to it, beside the agent's own user; "
			"without it the group of the user whom RAgents become" },
	{ "link_protection", SCHEMA_WORD, FIELD(conf_agent, link_protection), .words = protection_words,
		.fallback = "sealed",
		.help = "sealed: encrypted; trusted: only authenticated at its opening, for links that stay on one "
			"host" },
	{ "link_bytes", SCHEMA_WORD, FIELD(conf_agent, link_bytes), .words = bytes_words, .fallback = "memory",
		.help = "memory: of a link that is a UNIX socket, through memory that RAgent and agent share, which "
			"costs least; socket: on the socket, as over TCP" },
	{ "trusted_because", SCHEMA_STRING, FIELD(conf_agent, trusted_because),
		.help = "why a trusted link may leave the host all the same, in words for the next operator" },
	{ "peer", SCHEMA_ADDRESS, SCHEMA_REQUIRED, FIELD(conf_agent, peer), .unique = SCHEMA_ONCE_A_SOCKET,
		.help = "IP address and port where the other agents reach it, by UDP (broadcast) and TCP (agent-agent "
			"links)" },
	{ "peer_socket", SCHEMA_SOCKET_PATH, FIELD(conf_agent, peer_socket), .unique = SCHEMA_ONCE_A_SOCKET,
		.help = "UNIX socket for agents of the same host: backend sockets can follow a moving connection "
			"through it" },
	{ "backend_source", SCHEMA_HOST, FIELD(conf_agent, backend_source),
		.help = "local address from which it connects to backends" },
	{ "direct", SCHEMA_LIST, ARRAY(conf_agent, direct, direct_count), .max = ELEMENTS_MAX,
		.map = &(const struct schema_map){ direct_rows, sizeof(struct conf_direct),
			offsetof(struct conf_direct, line), rules_direct },
		.help = "TLS without RAgent, for clients or behind any other balancer" },
	{ NULL },
};

static const struct schema_row certificate_rows[] = {
	{ "name", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(conf_certificate, name), .unique = SCHEMA_ONCE_IN_LIST,
		.help = "for reference within this file" },
	{ "chain", SCHEMA_PATH, SCHEMA_REQUIRED, FIELD(conf_certificate, chain),
		.help = "PEM: the certificate, then its intermediates" },
	{ "key", SCHEMA_PATH, SCHEMA_REQUIRED, FIELD(conf_certificate, key),
		.help = "PEM: its private key, not for others to read" },
	{ NULL },
};

static const struct schema_row backend_rows[] = {
	{ "name", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(conf_backend, name), .unique = SCHEMA_ONCE_IN_LIST,
		.help = "for reference within this file" },
	{ "address", SCHEMA_ADDRESS, SCHEMA_REQUIRED, FIELD(conf_backend, address), .help = "where agents connect" },
	{ "proxy_v2", SCHEMA_WORD, FIELD(conf_backend, proxy_v2), SWITCHES, .fallback = "off",
		.help = "tell it client address and TLS facts in a PROXY v2 header" },
	{ "reuse", SCHEMA_WORD, FIELD(conf_backend, reuse), SWITCHES, .fallback = "off",
		.help = "keep its connections for other clients' requests between answers (service http only)" },
	{ NULL },
};

static const struct schema_row alpn_rows[] = {
	{ "protocol", SCHEMA_STRING, SCHEMA_REQUIRED, FIELD(conf_alpn, protocol), .unique = SCHEMA_ONCE_IN_LIST,
		.help = "as registered: http/1.1, h2, ..." },
	{ "service", SCHEMA_WORD, SCHEMA_REQUIRED, FIELD(conf_alpn, service), .words = service_words,
		.help = "how its plaintext is treated" },
	{ "backend", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(conf_alpn, backend), .refers_to = "backends",
		.help = "where its plaintext goes" },
	{ NULL },
};

static const struct schema_row tls_rows[] = {
	{ "version_min", SCHEMA_WORD, FIELD(conf_tls, version_min), .words = version_words, .fallback = "1.2",
		.help = "oldest TLS version" },
	{ "version_max", SCHEMA_WORD, FIELD(conf_tls, version_max), .words = version_words, .fallback = "1.3",
		.help = "newest TLS version" },
	{ "cipher_suites", SCHEMA_STRING, FIELD(conf_tls, cipher_suites),
		.help = "TLS 1.3, OpenSSL's names with : between; without it AES-GCM and ChaCha20-Poly1305" },
	{ "ciphers", SCHEMA_STRING, FIELD(conf_tls, ciphers),
		.help = "TLS 1.2, likewise; AEAD with ephemeral keys only" },
	{ "groups", SCHEMA_STRING, FIELD(conf_tls, groups),
		.help = "key exchange groups; without it X25519:P-256:P-384, and before them X25519MLKEM768 where "
			"OpenSSL has it (3.5 and later)" },
	{ "certificates", SCHEMA_ITEMS, SCHEMA_REQUIRED, ARRAY(conf_tls, certificates, certificate_count),
		.item = SCHEMA_NAME, .item_size = sizeof(char *), .max = ELEMENTS_MAX, .refers_to = "certificates",
		.unique = SCHEMA_ONCE_IN_LIST, .help = "names; the first serves clients whose server name fits none" },
	{ "client_ca", SCHEMA_PATH, FIELD(conf_tls, client_ca), .help = "PEM: who may sign client certificates" },
	{ "client_crl", SCHEMA_PATH, FIELD(conf_tls, client_crl),
		.help = "PEM: what these have revoked, a CRL of each CA in a client's chain; read again at SIGHUP" },
	{ "client_certificate", SCHEMA_WORD, FIELD(conf_tls, client_certificate), .words = client_certificate_words,
		.fallback = "none", .help = "is one asked for, is one needed" },
	{ "extended_master_secret", SCHEMA_WORD, FIELD(conf_tls, extended_master_secret),
		.words = extended_master_secret_words, .fallback = "required",
		.help = "of TLS 1.2 clients that resume (RFC 7627); optional for old ones, as Go's before 1.21" },
	{ "tls12_tickets", SCHEMA_WORD, FIELD(conf_tls, tls12_tickets), SWITCHES, .fallback = "off",
		.help = "TLS 1.2 tickets for clients that resume by nothing else; such sessions are in no store" },
	{ "tickets", SCHEMA_COUNT, FIELD(conf_tls, tickets), .max = 4, .fallback = "1",
		.help = "TLS 1.3 tickets after a full handshake, each a session in the store" },
	{ "session_lifetime", SCHEMA_DURATION_S, FIELD(conf_tls, session_lifetime_s), .min = 1, .max = 7 * D,
		.fallback = "2h", .help = "how long a session can be resumed" },
	{ NULL },
};

static const struct schema_row smtp_rows[] = {
	{ "starttls", SCHEMA_WORD, FIELD(conf_smtp, starttls), .words = starttls_words, .fallback = "require",
		.help = "require: mail is taken behind STARTTLS only; offer: in clear, too, but no AUTH; implicit: TLS "
			"from the first byte (port 465)" },
	{ "hostname", SCHEMA_STRING, FIELD(conf_smtp, hostname),
		.help = "the name in the banner and in the reply to EHLO; one for all agents, or senders resume no "
			"session" },
	{ "banner", SCHEMA_STRING, FIELD(conf_smtp, banner),
		.help = "what stands behind the name in the banner; without it ESMTP" },
	{ "capabilities", SCHEMA_ITEMS, ARRAY(conf_smtp, capabilities, capability_count), .item = SCHEMA_STRING,
		.item_size = sizeof(char *), .max = SMTP_EHLO_LINES_MAX - 1, .unique = SCHEMA_ONCE_IN_LIST,
		.help = "what the reply to EHLO lists before TLS, besides STARTTLS: what every server behind takes; "
			"without it PIPELINING, 8BITMIME and ENHANCEDSTATUSCODES" },
	{ "preamble_timeout", SCHEMA_DURATION_MS, FIELD(conf_smtp, preamble_timeout_ms), .min = 100 * MS,
		.max = 3600 * S, .fallback = "5min", .help = "from accept to STARTTLS; then the client is told 421" },
	{ "refusals", SCHEMA_COUNT, FIELD(conf_smtp, refusals_max), .min = 1, .max = 65535, .off = "off",
		.fallback = "20", .help = "so many refused commands before STARTTLS end the connection" },
	{ NULL },
};

static const struct schema_row listener_rows[] = {
	{ "name", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(conf_listener, name), .unique = SCHEMA_ONCE_IN_LIST,
		.help = "for reference, logs and the control API" },
	{ "listen", SCHEMA_ITEMS, ARRAY(conf_listener, listen.at, listen.count), .item = SCHEMA_ADDRESS,
		.item_size = sizeof(struct sockaddr_storage), .max = ELEMENTS_MAX, .unique = SCHEMA_ONCE_BOUND,
		.help = "RAgents' addresses, port 0 takes a free one; without it only agents' `direct` listeners have "
			"these settings" },
	{ "mode", SCHEMA_WORD, FIELD(conf_listener, mode), .words = mode_words, .fallback = "sf",
		.help = "sf: after the handshake a connection goes to its client's affinity agent; sl: it stays" },
	{ "migration", SCHEMA_WORD, FIELD(conf_listener, migration), .words = migration_words, .fallback = "on",
		.help = "off: a connection never leaves the agent of its handshake" },
	{ "handshake", SCHEMA_WORD, FIELD(conf_listener, handshake), .words = policy_words, .fallback = "round-robin",
		.help = "which agent makes a full handshake" },
	{ "resumption", SCHEMA_WORD, FIELD(conf_listener, resumption), .words = policy_words, .fallback = "local",
		.help = "which agent resumes (local: the affinity agent, unless it has too much to do)" },
	{ "affinity_bound", SCHEMA_REAL, FIELD(conf_listener, affinity_bound), .min = 1, .max = 1000, .off = "off",
		.fallback = "1.25", .help = "an agent takes at most so many times the mean load by affinity" },
	{ "service", SCHEMA_WORD, FIELD(conf_listener, service), .words = service_words, .fallback = "http",
		.help = "how its plaintext is treated" CONF_SERVICES(SERVICE_HELP) },
	{ "backend", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(conf_listener, backend), .refers_to = "backends",
		.help = "where plaintext goes, unless `alpn` says otherwise" },
	{ "smtp", SCHEMA_MAP, FIELD(conf_listener, smtp),
		.map = &(const struct schema_map){ smtp_rows, sizeof(struct conf_smtp), -1, rules_smtp },
		.help = "service smtp: what is said before TLS" },
	{ "rest_after", SCHEMA_DURATION_MS, FIELD(conf_listener, rest_after_ms), .min = 10 * MS, .max = 7 * D * S,
		.off = "off", .fallback = "30s",
		.help = "an idle connection between two answers leaves its agent after this time, until its next "
			"record" },
	{ "on_agent_loss", SCHEMA_WORD, FIELD(conf_listener, on_agent_loss), .words = agent_loss_words,
		.fallback = "close",
		.help = "service tcp: a connection on which no byte has passed is closed, or another agent connects "
			"anew" },
	{ "alpn", SCHEMA_LIST, ARRAY(conf_listener, alpn, alpn_count), .max = 64,
		.map = &(const struct schema_map){ alpn_rows, sizeof(struct conf_alpn),
			offsetof(struct conf_alpn, line) },
		.help = "protocols offered, most wanted first" },
	{ "proxy_protocol", SCHEMA_WORD, FIELD(conf_listener, proxy_protocol), SWITCHES, .fallback = "off",
		.help = "each connection begins with a PROXY header (v1 or v2) of the balancer in front" },
	{ "trusted", SCHEMA_ITEMS, ARRAY(conf_listener, trusted, trusted_count), .item = SCHEMA_NET,
		.item_size = sizeof(struct address_net), .max = ELEMENTS_MAX,
		.help = "networks from which a PROXY header is believed" },
	{ "tls", SCHEMA_MAP, SCHEMA_REQUIRED, FIELD(conf_listener, tls),
		.map = &(const struct schema_map){ tls_rows, sizeof(struct conf_tls), -1, rules_tls },
		.help = "how TLS is spoken" },
	{ NULL },
};

static const struct schema_row cluster_rows[] = {
	{ "link_key", SCHEMA_PATH, SCHEMA_REQUIRED, FIELD(conf, link_key),
		.help = "key file of the links between RAgents and agents: lines `id key`, the first is used, all are "
			"accepted" },
	{ "agents_key", SCHEMA_PATH, SCHEMA_REQUIRED, FIELD(conf, agents_key),
		.help = "key file of what only agents may read; no RAgent may be able to" },
	{ "own_provider", SCHEMA_WORD, FIELD(conf, own_provider), SWITCHES, .fallback = "on",
		.help = "handshakes take HMAC and TLS 1.3's key schedule from the agent; off: from OpenSSL, which "
			"costs more" },
	{ "log", SCHEMA_MAP, FIELD(conf, log),
		.map = &(const struct schema_map){ log_rows, sizeof(struct conf_log), -1 },
		.help = "of every process" },
	{ "limits", SCHEMA_MAP, FIELD(conf, limits), .map = &limits_map, .help = "of every process" },
	{ "health", SCHEMA_MAP, FIELD(conf, health), .map = &health_map, .help = "of every link" },
	{ "moves", SCHEMA_MAP, FIELD(conf, moves), .map = &moves_map, .help = "of every RAgent" },
	{ "store", SCHEMA_MAP, FIELD(conf, store),
		.map = &(const struct schema_map){ store_rows, sizeof(struct conf_store), -1 },
		.help = "sessions that can be resumed; each agent holds all of the cluster's, or its part "
			"(`replicas`)" },
	{ "broadcast", SCHEMA_MAP, FIELD(conf, broadcast),
		.map = &(const struct schema_map){ broadcast_rows, sizeof(struct conf_broadcast), -1, rules_broadcast },
		.help = "how agents share sessions and live keys" },
	{ "ragents", SCHEMA_LIST, ARRAY(conf, ragents, ragent_count), .max = NODES_MAX,
		.map = &(const struct schema_map){ ragent_rows, sizeof(struct conf_ragent),
			offsetof(struct conf_ragent, line), rules_ragent },
		.help = "the processes that hold clients' TCP connections and no keys" },
	{ "agents", SCHEMA_LIST, SCHEMA_REQUIRED, ARRAY(conf, agents, agent_count), .max = NODES_MAX,
		.map = &(const struct schema_map){ agent_rows, sizeof(struct conf_agent),
			offsetof(struct conf_agent, line), rules_agent },
		.help = "the processes that speak TLS" },
	{ "certificates", SCHEMA_LIST, SCHEMA_REQUIRED, ARRAY(conf, certificates, certificate_count),
		.max = ELEMENTS_MAX,
		.map = &(const struct schema_map){ certificate_rows, sizeof(struct conf_certificate),
			offsetof(struct conf_certificate, line) },
		.help = "certificates with their keys, on the agents' hosts" },
	{ "backends", SCHEMA_LIST, SCHEMA_REQUIRED, ARRAY(conf, backends, backend_count), .max = ELEMENTS_MAX,
		.map = &(const struct schema_map){ backend_rows, sizeof(struct conf_backend),
			offsetof(struct conf_backend, line) },
		.help = "what stands behind and gets plaintext" },
	{ "listeners", SCHEMA_LIST, SCHEMA_REQUIRED, ARRAY(conf, listeners, listener_count), .max = ELEMENTS_MAX,
		.map = &(const struct schema_map){ listener_rows, sizeof(struct conf_listener),
			offsetof(struct conf_listener, line), rules_listener },
		.help = "what clients connect to" },
	{ NULL },
};

/* clang-format on */

const struct schema_map schema_cluster = { cluster_rows, sizeof(struct conf), -1, rules_cluster };

const struct schema_row *schema_find(const struct schema_map *map, const char *key)
{
	for (const struct schema_row *row = map->rows; row->key; row++) {
		if (strcmp(row->key, key) == 0)
			return row;
	}
	return NULL;
}

const char *schema_nearest(const struct schema_map *map, const char *key)
{
	struct nearest nearest = NEAREST_TO(key);
	for (const struct schema_row *row = map->rows; row->key; row++)
		nearest_try(&nearest, row->key);
	return nearest_found(&nearest);
}

static int is_string(enum schema_type type)
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
		char *string, *element = at + i * (row->map ? row->map->size : row->item_size);
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
