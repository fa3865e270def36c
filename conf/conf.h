/* conf.h: the cluster file as C values. One YAML file describes a cluster; every process reads the same file and finds
 * its own name in it. conf/schema.c and conf/schema_listener.c have the tables of keys, defaults and bounds;
 * conf/example.yaml explains each.
 *
 * Loading checks all that needs no network: unknown keys, values, references between parts, missing files, and keys
 * that others can read. Errors: `file:line: key 'x': found 'y', expected z`.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "conf/service_traits.h"
#include "net/report/log_level.h"
#include "net/socket/address.h"
#include "net/socket/capture.h"
#include "proto/agents_key.h"
#include "proto/cipher_suite.h"
#include "proto/link_hello.h"
#include "smtp/preamble.h"

enum conf_mode { CONF_SF, CONF_SL };
enum conf_migration { CONF_MIGRATION_ON, CONF_MIGRATION_OFF };
enum conf_policy { CONF_ROUND_ROBIN, CONF_WEIGHTED, CONF_LEAST_CONNECTIONS, CONF_SHORTEST_RESPONSE, CONF_LOCAL };
enum conf_live { CONF_LIVE_BROADCAST, CONF_LIVE_CARRIED };
enum conf_switch { CONF_OFF, CONF_ON };
enum conf_agent_loss { CONF_CLOSE, CONF_RECONNECT };
enum conf_repeat { CONF_REPEAT_IDEMPOTENT, CONF_REPEAT_SAFE };
/* Which ended connections make a line in the log. */
enum conf_log_connections { CONF_LOG_SAMPLED, CONF_LOG_ALL, CONF_LOG_NONE };

struct conf_addresses {
	struct sockaddr_storage *at;
	size_t count;
};

/* Stands for a limit that follows from the machine's memory; conf_load() replaces it by a value (memory.h). */
#define CONF_DERIVED      UINT32_MAX
#define CONF_DERIVED_SIZE UINT64_MAX

#define CONF_WINDOW_MIN 32768u

/* The limits of the cluster. Agents use them; a RAgent may have its own. */
struct conf_limits {
	uint32_t connections; /* per process, 0: none */
	uint32_t connections_per_source;
	uint32_t handshakes; /* under way on one worker, 0: any */
	uint32_t handshakes_per_source;
	uint32_t preambles; /* service smtp: clients before STARTTLS, on one worker, 0: any */
	uint32_t preambles_per_source;
	uint64_t kept_len; /* bytes kept for connections, per process, 0: any */
	uint32_t handshake_timeout_ms;
	uint32_t request_head_timeout_ms; /* 0: none */
	uint32_t agent_wait_ms;           /* 0: none */
	uint32_t idle_timeout_ms;         /* 0: none */
	uint32_t doze_after_ms;           /* 0: never */
	uint32_t backend_connect_timeout_ms;
	uint32_t window_len; /* bytes per direction and connection */
	uint32_t replay_len; /* bytes of client records kept after they were consumed, until their checkpoint */
};

struct conf_log {
	enum log_format format;
	enum log_level level;
	enum conf_log_connections connections;
	char *path; /* NULL: standard error */
};

/* How fast connections change their agents; of one RAgent process. */
struct conf_moves {
	uint32_t takeovers_per_s;  /* 0: no limit */
	uint32_t rebalances_per_s; /* 0: connections stay where they are */
	uint32_t drain_timeout_ms; /* then connections that are left on a draining agent end */
};

/* Of links, for both sides. The cluster's; a RAgent may have its own. */
struct conf_health {
	uint32_t ping_ms, suspect_ms, lost_ms;
};

#define CONF_RAGENT_USER_DEFAULT "nobody" /* a RAgent that was started as root becomes this user */

struct conf_ragent {
	char *name;
	unsigned workers;
	char *control;                           /* path of the control socket; NULL: none */
	char *mail_status;                       /* UNIX socket of smtpproxy's counts; NULL: none */
	struct sockaddr_storage control_address; /* the control API over TCP, with tokens; ss_family 0: none */
	enum conf_switch control_proxy_protocol; /* PROXY header expected there */
	char *control_tokens;                    /* file with the hashes of those tokens */
	char *user;                              /* as root: run under this user (NULL: the default) */
	char *access_log;                        /* of ended connections; NULL: with the other events */
	struct conf_limits limits;               /* its own, else the cluster's; also the next two */
	struct conf_health health;
	struct conf_moves moves;
	uint32_t hang_ms; /* its keeper ends it after so long without progress */
};

struct conf_direct {
	struct sockaddr_storage address;
	char *listener;                  /* its TLS settings and service come from this listener */
	enum conf_switch proxy_protocol; /* PROXY header expected */
	struct address_net *trusted;     /* from these sources */
	size_t trusted_count;
};

struct conf_agent {
	char *name;
	unsigned workers;
	double weight;
	struct sockaddr_storage link; /* where RAgents connect: TCP or UNIX */
	char *link_group;             /* UNIX: this group may connect; NULL: the group of RAgent's user */
	char *user;                   /* as root: become this user when the sockets are open; NULL: stay root */
	enum link_protection link_protection;
	enum link_bytes link_bytes;   /* of a UNIX link; TCP has no choice */
	char *trusted_because;        /* the reason why a trusted link may leave this host; NULL: it may not */
	struct sockaddr_storage peer; /* UDP broadcast and TCP agent-agent links, one address */
	char *peer_socket;            /* UNIX socket for agent-agent links on one host; NULL: none */
	struct sockaddr_storage backend_source; /* ss_family 0: any */
	char *access_log;                       /* of direct listeners; NULL: with the other events */
	struct conf_direct *direct;
	size_t direct_count;
};

struct conf_certificate {
	char *name, *chain, *key; /* PEM files */
};

struct conf_backend {
	char *name;
	struct sockaddr_storage address;
	enum conf_switch proxy_v2;
	uint32_t proxy_v2_len;  /* the longest header that it takes */
	enum conf_switch reuse; /* at checkpoints, by services that share connections */
};

struct conf_alpn {
	char *protocol;
	enum conf_service service;
	char *backend;
};

struct conf_tls {
	uint16_t version_min, version_max;
	char *cipher_suites; /* TLS 1.3, OpenSSL names; NULL: all AEAD */
	char *ciphers;       /* TLS 1.2 */
	char *groups;        /* NULL: X25519MLKEM768 (OpenSSL 3.5), X25519, P-256, P-384 */
	char **certificates; /* names; the first is the default, others by SNI */
	size_t certificate_count;
	char *client_ca;  /* PEM; NULL: no client certificates asked */
	char *client_crl; /* PEM; NULL: revocation is not checked */
	enum { CONF_CLIENT_CERT_NONE, CONF_CLIENT_CERT_OPTIONAL, CONF_CLIENT_CERT_REQUIRED } client_certificate;
	enum { CONF_EMS_REQUIRED, CONF_EMS_OPTIONAL } extended_master_secret; /* TLS 1.2: does a resumption need it */
	enum conf_switch tls12_tickets;
	unsigned tickets; /* TLS 1.3 NewSessionTickets after a full handshake, 0..4 */
	uint32_t session_lifetime_s;
};

/* Does the mail server learn the addresses of its clients? HIDDEN: the file says that it need not. */
enum conf_client_address { CONF_CLIENT_ADDRESS_TOLD, CONF_CLIENT_ADDRESS_HIDDEN };

/* Texts of a listener of service smtp, the same on every agent: in clear, and behind TLS. */
struct conf_smtp {
	enum smtp_tls_policy starttls;
	char *hostname;      /* of the banner and of the reply to EHLO */
	char *banner;        /* behind the name; NULL: ESMTP */
	char **capabilities; /* of the reply to EHLO before TLS, STARTTLS not among them; none: CONF_SMTP_CAPABILITIES
			      */
	size_t capability_count;
	uint32_t preamble_timeout_ms;
	uint32_t end_timeout_ms; /* for the reply to the end of a mail */
	unsigned refusals_max;   /* 0: any */
	char **hide;             /* keywords of the backend's extensions that no client sees */
	size_t hide_count;
	enum conf_switch xclient; /* tell the client's address by XCLIENT to a backend that offers it */
	enum conf_client_address client_address;
};

#define CONF_SMTP_CAPABILITIES "PIPELINING", "8BITMIME", "ENHANCEDSTATUSCODES"

struct conf_listener {
	char *name;
	struct conf_addresses listen; /* RAgent's; may be empty when only agents listen directly */
	enum conf_mode mode;
	enum conf_migration migration;
	enum conf_policy handshake, resumption;
	double affinity_bound; /* 0: off; else >= 1.0 */
	enum conf_service service;
	char *backend;          /* name; for connections that match no row of @alpn */
	struct conf_smtp smtp;  /* service smtp */
	uint32_t rest_after_ms; /* 0: never */
	enum conf_agent_loss on_agent_loss;
	enum conf_repeat repeat_requests; /* methods, RFC 9110 9.2.1 and 9.2.2 */
	/* bytes of an answer that an agent may ask for again to go on with it; 0: none */
	uint64_t repeat_downloads_len;
	struct conf_alpn *alpn;
	size_t alpn_count;
	enum conf_switch proxy_protocol;
	struct address_net *trusted;
	size_t trusted_count;
	enum capture capture; /* how RAgent learns where a client wanted to go */
	struct conf_tls tls;
};

struct conf_store {
	uint64_t bytes;
	unsigned per_source_percent;
	uint32_t family_lifetime_s; /* no resumption this long after the full handshake */
};

struct conf_broadcast {
	enum conf_live live;
	uint32_t live_keep_s;
	uint32_t remember_s; /* how long agents remember ended connections */
	uint32_t heartbeat_ms;
	uint32_t alone_after_ms;
	uint32_t replicas;   /* agents that hold a session besides the one that made it; 0: all */
	uint32_t left_ms;    /* after this silence an agent counts as gone, with its sessions */
	uint32_t ring;       /* objects kept per worker for repair */
	uint32_t park_ms;    /* longest wait of a parked handshake */
	uint32_t parked_max; /* per worker */
	uint32_t key_lifetime_s;
};

/* The file of an object, whose first member it is. */
struct conf_file {
	char *path;
	/* The line of each value, for conf_line(). */
	struct conf_mark {
		const void *field;
		unsigned line;
	} * marks;
	size_t mark_count, mark_cap;
};

struct conf {
	struct conf_file file;
	char *link_key, *agents_key;   /* resolved paths */
	enum conf_switch own_provider; /* of HMAC, TLS13-KDF and TLS1-PRF, within the agents */
	struct conf_log log;
	struct conf_limits limits;
	struct conf_health health;
	struct conf_moves moves;
	struct conf_store store;
	struct conf_broadcast broadcast;
	struct conf_ragent *ragents;
	size_t ragent_count;
	struct conf_agent *agents;
	size_t agent_count;
	struct conf_certificate *certificates;
	size_t certificate_count;
	struct conf_backend *backends;
	size_t backend_count;
	struct conf_listener *listeners;
	size_t listener_count;
	uint64_t memory; /* the derived limits follow from it; 0: no limit was derived */
};

/* conf_load() derives limits from this machine's memory. conf_parse() leaves them at CONF_DERIVED, which is no limit.
 * 0, or CSSL_E_CONFIG with a message in @error, one line for each fault. Relative paths are relative to the file's
 * folder. conf_check_files() and those below check the files that the cluster file names. */
int conf_load(const char *path, struct conf **out, char *error, size_t error_cap);
int conf_parse(const char *text, size_t len, const char *name, struct conf **out, char *error, size_t error_cap);
void conf_destroy(struct conf *c);

/* The line of the value of a scalar field of a file's object, by the field's address; 0: the value is a default. */
unsigned conf_line(const struct conf_file *f, const void *field);

/* Check what such a daemon needs on this host: that its key files and its log can be opened, and that others cannot
 * read the keys. An agent checks PEM files, and their content, by tls_contexts_create(). FOR_RELOAD: that PEM files can
 * be opened, and that others cannot read private keys; the group may. For the user of this process, and nothing is
 * made. 0, or CSSL_E_CONFIG and messages as above. */
enum conf_reader { CONF_FOR_RAGENT, CONF_FOR_AGENT, CONF_FOR_RELOAD };
int conf_check_files(const struct conf *c, enum conf_reader who, char *error, size_t error_cap);
/* The same for what one of them has for itself: the folders of its sockets, its user and group, a log of its own. NULL:
 * there is none. */
int conf_check_node(
	const struct conf *c, const struct conf_ragent *r, const struct conf_agent *a, char *error, size_t error_cap);
/* All of these, for a tool on any host: what this host does not have, or this user cannot read, is no fault. @unread
 * gets one line for each ("": none). */
int conf_check_anywhere(const struct conf *c, char *error, size_t error_cap, char *unread, size_t unread_cap);

/* Read a key file (link.key, agents.key). A file that group or others can read or write is refused. The ring is
 * allocated with sodium_malloc; free it with sodium_free. NULL: @error names file, fault and remedy. */
struct key_ring *conf_read_key(const char *path, char *error, size_t error_cap);

/* For --check: print the cluster, the store's size in sessions and lifetimes, and the most memory that each process can
 * take. */
void conf_check_print(const struct conf *c, FILE *out);

/* For --help-config: print each key with its type, default and meaning, from the schema table. */
void conf_help_print(FILE *out);
/* The same as cssl.yaml(5), for man(7). */
void conf_manual_print(FILE *out, const char *version);

/* Does a client of this listener begin in clear, and say STARTTLS? */
bool conf_has_preamble(const struct conf_listener *l);
/* The extensions that the reply to EHLO lists before TLS. */
void conf_smtp_offers(const struct conf_smtp *smtp, struct smtp_ehlo *out);
/* SMTP_CAP_BIT()s of the extensions that clients do not see: those of the file, and those that no client ever does. */
uint32_t conf_smtp_hidden(const struct conf_smtp *smtp);

/* Do clients of this listener come to the control API of a RAgent, because its backend is a control_address? So
 * many of them may come above limits.connections: a crowd at other listeners does not keep operators out. */
#define CONF_CONTROL_PLACES 64u
bool conf_is_control(const struct conf *c, const struct conf_listener *l);
/* Is this backend a control_address? */
bool conf_is_control_backend(const struct conf *c, const struct conf_backend *b);

/* NULL: no such name. */
const struct conf_agent *conf_agent_find(const struct conf *c, const char *name);
const struct conf_ragent *conf_ragent_find(const struct conf *c, const char *name);
/* After so long without progress its keeper kills it. */
uint32_t conf_ragent_hang_ms(const struct conf_ragent *r);
const struct conf_listener *conf_listener_find(const struct conf *c, const char *name);
const struct conf_backend *conf_backend_find(const struct conf *c, const char *name);
const struct conf_certificate *conf_certificate_find(const struct conf *c, const char *name);
