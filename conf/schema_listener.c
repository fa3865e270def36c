/* schema_listener.c: the tables of a listener's keys: ALPN protocols, TLS, service smtp, and the listener itself. */
#include <stdint.h>

#include "conf/conf.h"
#include "conf/rules.h"
#include "conf/schema_rows.h"

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
#define SERVICE_HELP(id, name, rest, loss, first, ends, following, start, sharing, silence, haste, help)               \
	"; " name ": " help
static const struct schema_word version_words[] = { { "1.2", 0x0303 }, { "1.3", 0x0304 }, { NULL } };

/* clang-format off: one row for each key, with its type and one sentence for the manual. */

static const struct schema_row alpn_rows[] = {
	{ "protocol", SCHEMA_STRING, SCHEMA_REQUIRED, FIELD(conf_alpn, protocol), .unique = SCHEMA_ONCE_IN_LIST,
		.help = "the registered name: http/1.1, h2, ..." },
	{ "service", SCHEMA_WORD, SCHEMA_REQUIRED, FIELD(conf_alpn, service), .words = service_words,
		.help = "how agents treat the plaintext" },
	{ "backend", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(conf_alpn, backend), .refers_to = "backends",
		.help = "the backend that gets the plaintext" },
	{ NULL },
};

static const struct schema_row tls_rows[] = {
	{ "version_min", SCHEMA_WORD, FIELD(conf_tls, version_min), .words = version_words, .fallback = "1.2",
		.help = "the oldest TLS version" },
	{ "version_max", SCHEMA_WORD, FIELD(conf_tls, version_max), .words = version_words, .fallback = "1.3",
		.help = "the newest TLS version" },
	{ "cipher_suites", SCHEMA_STRING, FIELD(conf_tls, cipher_suites),
		.help = "for TLS 1.3: OpenSSL's names with : between; without this key AES-GCM and ChaCha20-Poly1305" },
	{ "ciphers", SCHEMA_STRING, FIELD(conf_tls, ciphers),
		.help = "for TLS 1.2: OpenSSL's names with : between; only AEAD with ephemeral keys is allowed" },
	{ "groups", SCHEMA_STRING, FIELD(conf_tls, groups),
		.help = "key exchange groups; without this key X25519:P-256:P-384, and before them X25519MLKEM768 if "
			"OpenSSL has it (3.5 and later)" },
	{ "certificates", SCHEMA_ITEMS, SCHEMA_REQUIRED, ARRAY(conf_tls, certificates, certificate_count),
		.item = SCHEMA_NAME, .max = ELEMENTS_MAX, .refers_to = "certificates", .unique = SCHEMA_ONCE_IN_LIST,
		.help = "names of certificates; a client whose server name matches none gets the first" },
	{ "client_ca", SCHEMA_PATH, FIELD(conf_tls, client_ca), .help = "PEM: the CAs of client certificates" },
	{ "client_crl", SCHEMA_PATH, FIELD(conf_tls, client_crl),
		.help = "PEM: a CRL of each CA in a client's chain; read again at SIGHUP" },
	{ "client_certificate", SCHEMA_WORD, FIELD(conf_tls, client_certificate),
		WORDS({ "none", CONF_CLIENT_CERT_NONE }, { "optional", CONF_CLIENT_CERT_OPTIONAL },
			{ "required", CONF_CLIENT_CERT_REQUIRED }),
		.fallback = "none",
		.help = "none: agents ask clients for no certificate; optional: agents ask; required: a client needs "
			"a certificate" },
	{ "extended_master_secret", SCHEMA_WORD, FIELD(conf_tls, extended_master_secret),
		WORDS({ "required", CONF_EMS_REQUIRED }, { "optional", CONF_EMS_OPTIONAL }), .fallback = "required",
		.help = "whether a TLS 1.2 client needs the extended master secret to resume (RFC 7627); optional "
			"admits old clients, such as Go's before 1.21" },
	{ "tls12_tickets", SCHEMA_WORD, FIELD(conf_tls, tls12_tickets), SWITCHES, .fallback = "off",
		.help = "on: TLS 1.2 tickets for clients that cannot resume otherwise; the store does not hold such "
			"sessions" },
	{ "tickets", SCHEMA_COUNT, FIELD(conf_tls, tickets), RANGE(0, 4, "1"),
		.help = "the number of TLS 1.3 tickets after a full handshake; each is a session in the store" },
	{ "session_lifetime", SCHEMA_DURATION_S, FIELD(conf_tls, session_lifetime_s), RANGE(1, 7 * D, "2h"),
		.help = "how long a session can be resumed" },
	{ NULL },
};

static const struct schema_row smtp_rows[] = {
	{ "starttls", SCHEMA_WORD, FIELD(conf_smtp, starttls),
		WORDS({ "require", SMTP_TLS_REQUIRE }, { "offer", SMTP_TLS_OFFER }, { "implicit", SMTP_TLS_IMPLICIT }),
		.fallback = "require",
		.help = "require: mail only after STARTTLS; offer: mail also in clear, but without AUTH; implicit: TLS "
			"from the first byte (port 465)" },
	{ "hostname", SCHEMA_STRING, FIELD(conf_smtp, hostname),
		.help = "the name in the banner and in the reply to EHLO. All agents use this one name, because "
			"senders resume a session only at the name that they know" },
	{ "banner", SCHEMA_STRING, FIELD(conf_smtp, banner),
		.help = "the text behind the name in the banner; without this key ESMTP" },
	{ "capabilities", SCHEMA_ITEMS, ARRAY(conf_smtp, capabilities, capability_count), .item = SCHEMA_STRING,
		.max = SMTP_EHLO_LINES_MAX - 1, .unique = SCHEMA_ONCE_IN_LIST,
		.help = "the extensions in the reply to EHLO before TLS, beside STARTTLS. Every backend must support "
			"them, but for PIPELINING. Without this key PIPELINING, 8BITMIME and ENHANCEDSTATUSCODES" },
	{ "preamble_timeout", SCHEMA_DURATION_MS, FIELD(conf_smtp, preamble_timeout_ms),
		RANGE(100 * MS, 3600 * S, "5min"),
		.help = "a client that takes longer, from accept to STARTTLS, gets 421" },
	{ "end_timeout", SCHEMA_DURATION_MS, FIELD(conf_smtp, end_timeout_ms), RANGE(100 * MS, 3600 * S, "10min"),
		.help = "while a client waits for the reply to the end of a mail, this limit replaces a shorter "
			"`idle_timeout`. With less than ten minutes (RFC 5321 4.5.3.2.6), a sender may repeat a mail "
			"that a slow backend has taken" },
	{ "refusals", SCHEMA_COUNT, FIELD(conf_smtp, refusals_max), RANGE(1, 65535, "20"), .off = "off",
		.help = "the connection ends after so many refused commands before STARTTLS, and after so many "
			"commands behind STARTTLS that an agent refuses in the backend's place" },
	{ "hide", SCHEMA_ITEMS, ARRAY(conf_smtp, hide, hide_count), .item = SCHEMA_STRING, .max = SMTP_CAP_OTHER,
		.unique = SCHEMA_ONCE_IN_LIST,
		.help = "extensions of the backend, by keyword, that clients do not see. Their parameters of MAIL and "
			"RCPT, AUTH, BDAT and ETRN are then refused, and with SMTPUTF8 all bytes beyond ASCII in "
			"commands. STARTTLS, XCLIENT, XFORWARD, XCSSLTX, and extensions with commands or replies that "
			"agents do not know, are always hidden" },
	{ "xclient", SCHEMA_WORD, FIELD(conf_smtp, xclient), SWITCHES, .fallback = "off",
		.help = "on: agents tell the backend the client's address by XCLIENT, if the backend grants XCLIENT "
			"to the agents. For servers that cannot read PROXY headers" },
	{ "client_address", SCHEMA_WORD, FIELD(conf_smtp, client_address),
		WORDS({ "told", CONF_CLIENT_ADDRESS_TOLD }, { "hidden", CONF_CLIENT_ADDRESS_HIDDEN }),
		.fallback = "told",
		.help = "told: the backend must have `proxy_v2`; for clients with TLS `xclient` is enough, and a "
			"backend that does not grant XCLIENT gets no mail of these clients; hidden: the backend takes "
			"every client for an agent. Such a backend must not relay for the agents' addresses, or it is "
			"an open relay" },
	{ NULL },
};

const struct schema_row schema_listener_rows[] = {
	{ "name", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(conf_listener, name), .unique = SCHEMA_ONCE_IN_LIST,
		.help = "the name that other keys, logs and the control API use" },
	{ "listen", SCHEMA_ITEMS, ARRAY(conf_listener, listen.at, listen.count), .item = SCHEMA_ADDRESS,
		.max = ELEMENTS_MAX, .unique = SCHEMA_ONCE_BOUND,
		.help = "the addresses on which RAgents listen; port 0: any free port. Without this key, only `direct` "
			"listeners of agents use these settings" },
	{ "mode", SCHEMA_WORD, FIELD(conf_listener, mode), WORDS({ "sf", CONF_SF }, { "sl", CONF_SL }),
		.fallback = "sf",
		.help = "sf: after the handshake a connection goes to its client's affinity agent; sl: it stays" },
	{ "migration", SCHEMA_WORD, FIELD(conf_listener, migration),
		WORDS({ "on", CONF_MIGRATION_ON }, { "off", CONF_MIGRATION_OFF }, { "true", CONF_MIGRATION_ON },
			{ "false", CONF_MIGRATION_OFF }),
		.fallback = "on", .help = "off: a connection never leaves the agent of its handshake" },
	{ "handshake", SCHEMA_WORD, FIELD(conf_listener, handshake), .words = policy_words, .fallback = "round-robin",
		.help = "which agent makes a full handshake. round-robin: agents take turns; weighted: turns by "
			"`weight`; least-connections: the fewest for the weight; shortest-response: who should answer "
			"first; local: the affinity agent, unless it has too much to do (`affinity_bound`)" },
	{ "resumption", SCHEMA_WORD, FIELD(conf_listener, resumption), .words = policy_words, .fallback = "local",
		.help = "which agent resumes a session; the words are those of `handshake`" },
	{ "affinity_bound", SCHEMA_REAL, FIELD(conf_listener, affinity_bound), RANGE(1, 1000, "1.25"), .off = "off",
		.help = "by affinity an agent gets at most so many times its share of connections; off: no bound" },
	{ "service", SCHEMA_WORD, FIELD(conf_listener, service), .words = service_words, .fallback = "http",
		.help = "how agents treat the plaintext" CONF_SERVICES(SERVICE_HELP) },
	{ "backend", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(conf_listener, backend), .refers_to = "backends",
		.help = "the backend that gets the plaintext, if no row of `alpn` matches" },
	{ "smtp", SCHEMA_MAP, FIELD(conf_listener, smtp), MAP(smtp_rows, rules_smtp),
		.help = "service smtp: the agent's dialogue before TLS" },
	{ "rest_after", SCHEMA_DURATION_MS, FIELD(conf_listener, rest_after_ms), RANGE(10 * MS, 7 * D * S, "30s"),
		.off = "off",
		.help = "a connection that is idle between two answers for so long has no owner until its next "
			"record" },
	{ "on_agent_loss", SCHEMA_WORD, FIELD(conf_listener, on_agent_loss),
		WORDS({ "close", CONF_CLOSE }, { "reconnect", CONF_RECONNECT }), .fallback = "close",
		.help = "service tcp: what happens to a connection without a byte so far when its agent is lost. "
			"close: the connection ends; reconnect: another agent connects to the backend" },
	{ "repeat_requests", SCHEMA_WORD, FIELD(conf_listener, repeat_requests),
		WORDS({ "idempotent", CONF_REPEAT_IDEMPOTENT }, { "safe", CONF_REPEAT_SAFE }), .fallback = "idempotent",
		.help = "service http: what happens to a request without a byte of its answer when its agent is lost. "
			"idempotent: another agent repeats GET, HEAD, OPTIONS and TRACE, and also PUT and DELETE if "
			"the lost process is proved dead; safe: PUT and DELETE always get 502, as POST does" },
	{ "repeat_downloads", SCHEMA_SIZE, FIELD(conf_listener, repeat_downloads_len), RANGE(1 * KIB, 1 * TIB, "off"),
		.off = "off",
		.help = "service http: the loss of an agent cuts an answer to GET, and the backend has no ranges for "
			"this answer. Then another agent asks for the whole answer again, if the client has got at "
			"most so much of it. The answer goes on if the repeated answer begins with the same bytes; "
			"else the client gets an alert" },
	{ "alpn", SCHEMA_LIST, ARRAY(conf_listener, alpn, alpn_count), .max = 64, MAP(alpn_rows),
		.help = "the offered protocols, the preferred protocol first; without this key, service smtp takes "
			"smtp and esmtp, and the other services do not look at ALPN" },
	{ "proxy_protocol", SCHEMA_WORD, FIELD(conf_listener, proxy_protocol), SWITCHES, .fallback = "off",
		.help = "on: each connection begins with a PROXY header (v1 or v2) of the balancer in front" },
	{ "trusted", SCHEMA_ITEMS, ARRAY(conf_listener, trusted, trusted_count), .item = SCHEMA_NET,
		.max = ELEMENTS_MAX, .help = "networks of the balancers that may send a PROXY header" },
	{ "original_destination", SCHEMA_WORD, FIELD(conf_listener, capture),
		WORDS({ "none", CAPTURE_NONE }, { "redirect", CAPTURE_REDIRECT }, { "tproxy", CAPTURE_TPROXY }),
		.fallback = "none",
		.help = "how the kernel leads connections for other hosts here; the PROXY header to the backend then "
			"names the host that the client wanted. redirect: the kernel redirects them (nftables "
			"`redirect`); tproxy: the kernel delivers them as they are (nftables `tproxy`), which needs "
			"CAP_NET_ADMIN, and a port other than the port that clients want. Who connects to the "
			"listener itself gets 421 (service smtp), or a reset" },
	{ "tls", SCHEMA_MAP, SCHEMA_REQUIRED, FIELD(conf_listener, tls), MAP(tls_rows, rules_tls),
		.help = "TLS settings" },
	{ NULL },
};

/* clang-format on */
