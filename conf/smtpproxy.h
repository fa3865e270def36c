/* smtpproxy.h: the configuration file of smtpproxy as C values. It is a file of its own: its keys are in smtpproxy.c.
 */
#pragma once

#include <stdio.h>

#include "conf/conf.h"
#include "net/socket/address.h"

enum smtpproxy_tls {
	SMTPPROXY_TLS_BY_ADDRESS, /* of a domain: as for the address; of a receiver: as `outward` says */
	SMTPPROXY_TLS_NONE,       /* always in clear */
	SMTPPROXY_TLS_MAY,        /* if the receiver offers it, with any certificate */
	SMTPPROXY_TLS_ENCRYPT,    /* always, with any certificate */
	SMTPPROXY_TLS_VERIFY,     /* always, with a certificate of a known authority for a known name */
	SMTPPROXY_TLS_DANE,       /* as the receiver's TLSA records say (RFC 7672); without such records as MAY */
	SMTPPROXY_TLS_DANE_ONLY,  /* the same; without such records no mail */
};

enum smtpproxy_hook_type {
	SMTPPROXY_HOOK_MILTER, /* sendmail's protocol for filters: sees the whole message, and may change its header */
	SMTPPROXY_HOOK_HTTP,   /* gets the envelope as JSON at DATA */
};

/* The effect on a transaction of a hook that does not answer. */
enum smtpproxy_on_failure { SMTPPROXY_TEMPFAIL, SMTPPROXY_ACCEPT, SMTPPROXY_REJECT };

/* Another program that judges mail. */
struct smtpproxy_hook {
	char *name;
	enum smtpproxy_hook_type type;
	struct sockaddr_storage address;
	char *path;          /* HTTP: of the request */
	uint32_t timeout_ms; /* for each of its answers */
	enum smtpproxy_on_failure on_failure;
};

struct smtpproxy_listener {
	struct sockaddr_storage address;
	enum capture capture;             /* NONE: a PROXY header names the destination that a sender wanted */
	struct sockaddr_storage next_hop; /* family 0: the destination that the sender wanted */
	struct address_net *trusted;      /* who may send PROXY headers */
	size_t trusted_count;
	struct address_net *clients; /* deliver: queue: who may send mail to anybody */
	size_t client_count;
	char **accept; /* the same: domains to which everybody may send mail (smtp_domain_is_in()) */
	size_t accept_count;
	char **hooks; /* names, in the order in which they are asked */
	size_t hook_count;
};

struct smtpproxy_source {
	struct sockaddr_storage address; /* port 0 */
	uint32_t weight;
};

/* A row of `receivers`: facts about some receivers. */
struct smtpproxy_receiver {
	struct address_net network;
	char *name; /* that its certificate must have; NULL: not known */
	enum smtpproxy_tls tls;
	uint32_t connections; /* 0: as limits say */
};

struct smtpproxy_outward {
	uint16_t *ports; /* of destinations */
	size_t port_count;
	enum conf_switch any_port;
	struct sockaddr_storage *never; /* destinations that lead back to us */
	size_t never_count;
	struct address_net *local; /* destinations that are allowed although they are addresses of this host */
	size_t local_count;
	enum conf_switch as_sender; /* connections come from the sender's address */
	struct smtpproxy_source *sources;
	size_t source_count;
	struct smtpproxy_receiver *receivers; /* the first that has the address counts */
	size_t receiver_count;
	enum smtpproxy_tls tls;    /* where no row says more */
	enum conf_switch keep_tls; /* mail that came with TLS goes on with TLS only */
	char *ca;                  /* NULL: those of the system */
	uint32_t idle_ms;          /* a connection without a transaction is kept so long */
	uint32_t connect_ms;       /* for the connection itself */
	uint32_t banner_ms;        /* for the banner */
	uint32_t command_ms;       /* for a reply to EHLO, MAIL, RCPT, STARTTLS and QUIT */
	uint32_t data_ms;          /* for a reply to DATA */
	uint32_t block_ms;         /* for the receiver to take more of the content */
	uint32_t end_ms;           /* for the reply to the end of the content */
	uint32_t most_messages;    /* of one connection */
};

struct smtpproxy_limits {
	uint32_t sessions;            /* 0: no limit */
	uint32_t sessions_per_source; /* 0: no limit */
	uint32_t connections;         /* of one destination */
	uint32_t destinations;        /* remembered */
	uint32_t transactions;        /* ids whose transactions are remembered for XCSSLTX */
	uint32_t sender_ms;           /* for the sender's next bytes */
	uint32_t lease_ms;            /* a slow sender keeps a connection so long while others wait */
	uint32_t least_rate;          /* and for its content as long as at so many bytes a second */
	uint32_t turn_ms;             /* MAIL waits at most so long for a connection */
	uint32_t stop_ms;             /* sessions that are left so long after SIGTERM are cut */
	uint32_t replaced_ms;         /* sessions that are left so long after a handover end between transactions */
	uint32_t errors;              /* commands refused by smtpproxy itself */
	uint32_t hops;                /* Received fields of a message */
	uint64_t held_message;        /* bytes of a message that is kept for its hooks */
	uint64_t held_total;          /* bytes of all of them */
};

/* Where names are asked for. */
struct smtpproxy_dns {
	struct sockaddr_storage *servers; /* none: those of /etc/resolv.conf */
	size_t server_count;
	char *trust_anchor; /* NULL: no answer is secure */
	uint32_t timeout_ms;
};

/* RELAY: a message is passed to the receiver at once. QUEUE: it is stored, and delivered later. */
enum smtpproxy_deliver { SMTPPROXY_RELAY, SMTPPROXY_QUEUE };
enum smtpproxy_role { SMTPPROXY_OWNER, SMTPPROXY_STANDBY, SMTPPROXY_ALONE };

/* One of the Redis servers that hold a copy of the queue. */
struct smtpproxy_backup {
	struct sockaddr_storage *paths; /* of the same server, on different networks */
	size_t path_count;
	char *user, *password_file; /* NULL: the default user; no password */
	char *ca;                   /* NULL: without TLS */
	char *name;                 /* that its certificate must have; NULL: the address */
	char *certificate, *key;    /* of this gateway; NULL: it shows none */
};

/* A row of `queue.domains`: facts about the mail servers of a domain. */
struct smtpproxy_domain {
	char *domain;                     /* a pattern: smtp_domain_is_in() */
	struct sockaddr_storage next_hop; /* family 0: that of the queue, or as the domain's MX records say */
	enum smtpproxy_tls tls;
	char *name; /* that certificates must have; NULL: that of the mail server */
};

struct smtpproxy_queue {
	char *name; /* of the gateway, in the backups */
	char *keys; /* file; seals what the backups hold */
	enum smtpproxy_role role;
	struct smtpproxy_backup *backups; /* two */
	size_t backup_count;
	struct smtpproxy_backup *spares; /* take the place of a lost one */
	size_t spare_count;
	uint32_t replace_ms;              /* when it is lost for so long */
	struct sockaddr_storage next_hop; /* where no row of @domains has one; family 0: as MX records say */
	struct smtpproxy_domain *domains;
	size_t domain_count;
	enum conf_switch xcssltx; /* the next hop knows names of transactions */
	uint32_t port;            /* of receivers that were found by name */
	uint64_t message_size;    /* the largest message */
	uint64_t memory;          /* bytes of all messages that are not stored yet */
	uint64_t total;        /* bytes of all that the queue holds; 0: not set, and the machine's memory not known */
	uint32_t store_ms;     /* for the backups to answer */
	uint32_t recipients;   /* the most of a message */
	uint32_t destinations; /* the most with messages; without next_hop, one for each domain */
	uint32_t decided;      /* transactions remembered for XCSSLTX */
	uint32_t decided_s;    /* so long */
	uint32_t deliveries;   /* at the same time, to one destination */
	uint32_t retry_first_ms, retry_last_ms;
	uint32_t expire_s;
};

struct conf_smtpproxy {
	struct conf_file file;
	char *name;     /* the host name that banner and replies show */
	char *user;     /* NULL: the user that started it */
	char *control;  /* UNIX socket; NULL: none */
	char *status;   /* UNIX socket that tells counts only; NULL: none */
	char *handover; /* UNIX socket; NULL: none */
	char *events;   /* file; NULL: none */
	struct conf_log log;
	struct smtpproxy_listener *listeners;
	size_t listener_count;
	struct smtpproxy_hook *hooks;
	size_t hook_count;
	struct smtpproxy_outward outward;
	struct smtpproxy_dns dns;
	struct smtpproxy_limits limits;
	enum conf_switch fairness;
	enum smtpproxy_deliver deliver;
	struct smtpproxy_queue queue; /* deliver is QUEUE */
	uint64_t machine;             /* bytes of memory that the process may use; 0: not known */
};

extern const struct schema_map schema_smtpproxy; /* struct conf_smtpproxy */

/* Read and check the file. 0 with *out, or CSSL_E_CONFIG or CSSL_E_NO_MEMORY with every fault in @error, one a line. */
int conf_smtpproxy_load(const char *path, struct conf_smtpproxy **out, char *error, size_t error_cap);
int conf_smtpproxy_parse(
	const char *text, size_t len, const char *name, struct conf_smtpproxy **out, char *error, size_t error_cap);
void conf_smtpproxy_destroy(struct conf_smtpproxy *c); /* NULL is legal */

/* Check that its logs and its sockets can be made, and that its user exists, as conf_check_files() does. */
int conf_smtpproxy_check_files(const struct conf_smtpproxy *c, char *error, size_t error_cap);

/* The memory that mail may take: for --check. Nothing unless deliver is queue. */
void conf_smtpproxy_memory_print(const struct conf_smtpproxy *c, FILE *out);

/* The addresses of this host that the file names (`sources`, `listeners`) are there. 0, or CSSL_E_CONFIG as above. */
int conf_smtpproxy_check_host(const struct conf_smtpproxy *c, char *error, size_t error_cap);

/* Mail that came with TLS may go on in clear, and the file does not say that this is meant: the sentence for the
 * operator. Else NULL. */
const char *conf_smtpproxy_tls_gap(const struct conf_smtpproxy *c);

/* May a destination have this port? */
bool conf_smtpproxy_has_port(const struct conf_smtpproxy *c, uint32_t port);

/* For --check: prints the default role of the queue, and its effect, if the file has none. */
void conf_smtpproxy_role_print(const struct conf_smtpproxy *c, FILE *out);

/* Every key, with its help. */
void conf_smtpproxy_help_print(FILE *out);
