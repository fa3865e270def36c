/* smtpproxy_queue.c: the keys of smtpproxy's queue, its backups, and the domains that it delivers to. */
#include "conf/schema_rows.h"
#include "conf/smtpproxy.h"
#include "net/socket/address.h"
#include "smtp/domain.h"

#define DOMAINS_MAX 256
#define SPARES_MAX  4

/* clang-format off: one row for each key, with its type and one sentence for the manual. */

const struct schema_word schema_some_tls_words[] = {
	{ "outward", SMTPPROXY_TLS_BY_ADDRESS },
	{ "none", SMTPPROXY_TLS_NONE },
	{ "may", SMTPPROXY_TLS_MAY },
	{ "encrypt", SMTPPROXY_TLS_ENCRYPT },
	{ "verify", SMTPPROXY_TLS_VERIFY },
	{ "dane", SMTPPROXY_TLS_DANE },
	{ "dane-only", SMTPPROXY_TLS_DANE_ONLY },
	{ NULL },
};

static const struct schema_row backup_rows[] = {
	{ "paths", SCHEMA_ITEMS, SCHEMA_REQUIRED, ARRAY(smtpproxy_backup, paths, path_count), .item = SCHEMA_ADDRESS,
		.max = 2,
		.help = "one or two addresses of this server, on different networks: smtpproxy uses the second "
			"address when the first is silent" },
	{ "user", SCHEMA_STRING, FIELD(smtpproxy_backup, user), .help = "the ACL user; without this key, the default" },
	{ "password_file", SCHEMA_PATH, FIELD(smtpproxy_backup, password_file),
		.help = "a file with the password in its first line, which only its owner may read; without this key, "
			"smtpproxy sends no password" },
	{ "ca", SCHEMA_PATH, FIELD(smtpproxy_backup, ca),
		.help = "TLS to this server: a PEM file of the authorities that its certificate has to come from; "
			"without this key, in clear" },
	{ "name", SCHEMA_STRING, FIELD(smtpproxy_backup, name),
		.help = "the name that its certificate must have; without this key, the address of each path" },
	{ "certificate", SCHEMA_PATH, FIELD(smtpproxy_backup, certificate),
		.help = "a PEM file: this gateway's certificate, for a server with `tls-auth-clients` (the default)" },
	{ "key", SCHEMA_PATH, FIELD(smtpproxy_backup, key), .help = "a PEM file: the key of that certificate" },
	{ NULL },
};

static void check_backup(struct complaints *c, const struct node *map, const void *object)
{
	const struct smtpproxy_backup *b = object;
	const char *of_tls = b->name ? "name" : b->certificate ? "certificate" : b->key ? "key" : NULL;

	/* without `ca` they would change nothing, and the operator would think that the mail is encrypted */
	if (!b->ca && of_tls)
		complain(c, node_line(map, of_tls), of_tls, "it", "none without `ca`, which makes TLS");
	if (!b->certificate != !b->key)
		complain(c, node_line(map, b->key ? "key" : "certificate"), b->key ? "certificate" : "key", "nothing",
			"both or neither");
	for (size_t i = 0; i < b->path_count; i++)
		if (b->ca && !b->name && b->paths[i].ss_family == AF_UNIX)
			complain(c, node_line(map, "paths"), "name", "nothing", "one, because a socket has no address");
}

static const struct schema_map backup_map = { backup_rows, check_backup };

static const struct schema_row domain_rows[] = {
	{ "domain", SCHEMA_STRING, SCHEMA_REQUIRED, FIELD(smtpproxy_domain, domain), .unique = SCHEMA_ONCE_IN_LIST,
		.help = "the domain of recipients, as it is behind the `@`: `example.org` without its subdomains, or "
			"`*.example.org` for these. The first row that fits counts" },
	{ "next_hop", SCHEMA_ADDRESS, FIELD(smtpproxy_domain, next_hop),
		.help = "mail for this domain goes there, instead of to `next_hop` of `queue` or to its mail servers" },
	{ "tls", SCHEMA_WORD, FIELD(smtpproxy_domain, tls), .words = schema_some_tls_words, .fallback = "outward",
		.help = "as `tls` of `outward`, for its mail servers, whatever their addresses; outward: as `outward` "
			"says" },
	{ "name", SCHEMA_STRING, FIELD(smtpproxy_domain, name),
		.help = "the name that certificates must have, and whose TLSA records count; without this key, that of "
			"the mail server in the MX record. With `verify` such a name is only as sure as the DNS" },
	{ NULL },
};

static const struct schema_row queue_rows[] = {
	{ "name", SCHEMA_NAME, FIELD(smtpproxy_queue, name), .fallback = "mail",
		.help = "the name of this queue in the backups. Gateways of one name own one queue, one at a time" },
	{ "keys", SCHEMA_PATH, FIELD(smtpproxy_queue, keys),
		.help = "a file of `id key` lines (key: 64 hex digits), which only its owner may read; the first key "
			"seals what the backups hold, and all keys open it. Required with deliver: queue" },
	{ "role", SCHEMA_WORD, FIELD(smtpproxy_queue, role),
		WORDS({ "owner", SMTPPROXY_OWNER }, { "standby", SMTPPROXY_STANDBY }, { "alone", SMTPPROXY_ALONE }),
		.fallback = "owner",
		.help = "owner: takes the queue over when it starts; standby: takes the queue over when the owner is "
			"silent. Both need the answer of every Redis server that may hold messages, or an operator's "
			"order: `csslctl mail queue takeover`. alone: no other gateway ever has this `name`. This "
			"gateway goes on without a server that does not come back, fills servers that came back "
			"empty, and while no server answers it delivers what it has in memory" },
	{ "backups", SCHEMA_LIST, ARRAY(smtpproxy_queue, backups, backup_count), .map = &backup_map, .max = 2,
		.help = "two independent Redis or Valkey servers, none of them a replica of the other; they need "
			"maxmemory-policy noeviction and no persistence. Required with deliver: queue" },
	{ "spares", SCHEMA_LIST, ARRAY(smtpproxy_queue, spares, spare_count), .map = &backup_map, .max = SPARES_MAX,
		.help = "further servers of that kind: when a backup is lost, the first spare that answers takes its "
			"place, and smtpproxy fills the spare. All gateways of this `name` need the same `backups` "
			"and `spares`, in the same order" },
	{ "replace_after", SCHEMA_DURATION_MS, FIELD(smtpproxy_queue, replace_ms),
		RANGE(5 * S, 24 * 60 * MINUTES, "1min"),
		.help = "a backup that did not answer on any path for so long, or had no memory for what it lacks, "
			"gives its place to a spare, if the other backup is in sync" },
	{ "next_hop", SCHEMA_ADDRESS, FIELD(smtpproxy_queue, next_hop),
		.help = "mail goes there, unless a row of `domains` says otherwise. Without this key, mail goes to "
			"the mail servers of each recipient's domain, by its MX records (RFC 5321 5.1)" },
	{ "domains", SCHEMA_LIST, ARRAY(smtpproxy_queue, domains, domain_count), MAP(domain_rows), .max = DOMAINS_MAX,
		.help = "what is known of some domains of recipients" },
	{ "port", SCHEMA_COUNT, FIELD(smtpproxy_queue, port), RANGE(1, 65535, "25"),
		.help = "the port of mail servers that are found by name; for tests" },
	{ "xcssltx", SCHEMA_WORD, FIELD(smtpproxy_queue, xcssltx), SWITCHES, .fallback = "off",
		.help = "on: the next hop takes PROXY headers from this gateway and speaks XCSSLTX, as another "
			"smtpproxy does. Then no message comes twice when the gateway dies. Each message has a "
			"connection of its own" },
	{ "message_size", SCHEMA_SIZE, FIELD(smtpproxy_queue, message_size), RANGE(65536, 1 << 29, "32MiB"),
		.help = "the largest message" },
	{ "memory", SCHEMA_SIZE, FIELD(smtpproxy_queue, memory), RANGE(1 << 20, 1e12, "256MiB"),
		.help = "the most bytes of messages that come in or wait for the backups, of all senders. While it is "
			"used up, senders get 452 and the listening ports are closed, until half of it is free. While "
			"more than half is used, an address with several messages gets 452 when it has a quarter" },
	{ "total", SCHEMA_SIZE, FIELD(smtpproxy_queue, total), .min = 16 << 20, .max = 1e13,
		.help = "the most memory of stored mail and all else that the queue holds. Above it senders get 452 "
			"and the listening ports are closed, until a tenth of it is free. Mail that is read back at a "
			"start counts, and is never refused. Without this key, half of the memory that the process may "
			"use. A change counts from the next start on" },
	{ "store_timeout", SCHEMA_DURATION_MS, FIELD(smtpproxy_queue, store_ms), RANGE(1 * S, 9 * MINUTES, "1min"),
		.help = "a message that the backups have not confirmed so long after its end gets 451 and is deleted "
			"again (senders wait 10 minutes: RFC 5321 4.5.3.2.6). A message for several destinations is "
			"stored in parts, and each part that is confirmed gives the others so much time, up to 9 "
			"minutes in all" },
	{ "recipients", SCHEMA_COUNT, FIELD(smtpproxy_queue, recipients), RANGE(100, 10000, "1000"),
		.help = "the most recipients of a message (RFC 5321 4.5.3.1.8: at least 100)" },
	{ "destinations", SCHEMA_COUNT, FIELD(smtpproxy_queue, destinations), RANGE(1, 1000000, "100000"),
		.help = "the most destinations with messages; without `next_hop` each domain is one. Mail for a "
			"further destination gets 452. A change counts from the next start on" },
	{ "decided", SCHEMA_COUNT, FIELD(smtpproxy_queue, decided), RANGE(1000, 1e8, "1000000"),
		.help = "the most transactions whose end smtpproxy remembers for agents of a cluster (XCSSLTX). Above "
			"that, smtpproxy forgets the oldest for each new transaction; then its answer about a "
			"forgotten transaction may be `unknown`, and a sender gets 421 where its mail could have been "
			"repeated. Each transaction takes about 400 bytes here and in the Redis servers. A change "
			"counts from the next start on" },
	{ "decided_time", SCHEMA_DURATION_S, FIELD(smtpproxy_queue, decided_s), RANGE(60, 1 * D, "1h"),
		.help = "how long smtpproxy remembers a transaction's end. A change counts from the next start on" },
	{ "deliveries", SCHEMA_COUNT, FIELD(smtpproxy_queue, deliveries), RANGE(1, 1000, "20"),
		.help = "the most deliveries to one destination at the same time" },
	{ "retry_first", SCHEMA_DURATION_MS, FIELD(smtpproxy_queue, retry_first_ms), RANGE(100, 60 * MINUTES, "5min"),
		.help = "after a failure, the next attempt comes so much later; the time doubles with each failure" },
	{ "retry_last", SCHEMA_DURATION_MS, FIELD(smtpproxy_queue, retry_last_ms), RANGE(100, 24 * 60 * MINUTES, "4h"),
		.help = "the longest time between two attempts" },
	{ "expire", SCHEMA_DURATION_S, FIELD(smtpproxy_queue, expire_s), RANGE(1, 30 * D, "5d"),
		.help = "if a delivery fails and the message is older, smtpproxy gives it up, and the sender gets a "
			"notice (RFC 5321 4.5.4.1)" },
	{ NULL },
};

static bool has_path(const struct smtpproxy_backup *b, const struct sockaddr_storage *path)
{
	for (size_t i = 0; i < b->path_count; i++)
		if (address_is_same((const struct sockaddr *)&b->paths[i], (const struct sockaddr *)path))
			return true;
	return false;
}

/* A server that is an earlier one of the file, too: one of `backups`, or one of the first @count spares. */
static const char *listed_in(const struct smtpproxy_queue *q, size_t count, const struct sockaddr_storage *path)
{
	for (size_t i = 0; i < q->backup_count; i++)
		if (has_path(&q->backups[i], path))
			return "queue.backups";
	for (size_t i = 0; i < count; i++)
		if (has_path(&q->spares[i], path))
			return "an earlier one of queue.spares";
	return NULL;
}

static void check_spare(struct complaints *c, const struct node *n, const struct smtpproxy_queue *q, size_t at)
{
	const struct smtpproxy_backup *s = &q->spares[at];
	char text[ADDRESS_TEXT_MAX];

	for (size_t i = 0; i < s->path_count; i++) {
		const char *where = listed_in(q, at, &s->paths[i]);

		if (where)
			complain_value(c, node_line(n, "paths"), "queue.spares",
				address_format((const struct sockaddr *)&s->paths[i], text),
				"a server that is not in %s: each holds one copy", where);
	}
}

/* An address has no name that a certificate could have. */
static void check_name(
	struct complaints *c, const struct node *n, const struct smtpproxy_queue *q, const struct smtpproxy_domain *d)
{
	const bool by_dns = d->next_hop.ss_family == AF_UNSPEC && q->next_hop.ss_family == AF_UNSPEC;

	if (!by_dns && d->tls >= SMTPPROXY_TLS_VERIFY && !d->name)
		complain(c, node_line(n, "tls"), "name", "nothing",
			"the name of the certificate, because its mail goes to an address, and tls is verify, dane "
			"or dane-only");
	if (!smtp_domain_pattern_is_good(d->domain))
		complain_value(c, node_line(n, "domain"), "domain", d->domain, SCHEMA_DOMAIN);
}

static void queue_check(struct complaints *c, const struct node *map, const void *object)
{
	const struct smtpproxy_queue *q = object;
	const struct node *spares = node_child(map, "spares"), *domains = node_child(map, "domains");
	const struct node *n = spares ? spares->first : NULL;

	for (size_t i = 0; n && i < q->spare_count; i++, n = n->next)
		check_spare(c, n, q, i);
	n = domains ? domains->first : NULL;
	for (size_t i = 0; n && i < q->domain_count; i++, n = n->next)
		check_name(c, n, q, &q->domains[i]);
}

const struct schema_map schema_smtpproxy_queue = { queue_rows, queue_check };
