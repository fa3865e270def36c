/* smtpproxy.c: the keys of smtpproxy's file, and its loading. */
#include "conf/smtpproxy.h"

#include "conf/load.h"
#include "conf/schema.h"
#include "conf/schema_rows.h"
#include "conf/value.h"
#include "net/memory/machine_memory.h"
#include "proto/error.h"
#include "smtp/domain.h"

#define LISTENERS_MAX 64
#define NETS_MAX      256
#define SOURCES_MAX   256
#define HOOKS_MAX     16
#define SMTP_PORT     25u

#define MEMORY_IF_UNKNOWN (UINT64_C(2) << 30)
#define TOTAL_STEP        (UINT64_C(1) << 20) /* bytes */

/* clang-format off: one row for each key, with its type and one sentence for the manual. */

static const struct schema_row listener_rows[] = {
	{ "address", SCHEMA_ADDRESS, SCHEMA_REQUIRED, FIELD(smtpproxy_listener, address), .unique = SCHEMA_ONCE_IN_LIST,
		.help = "where senders connect, or are redirected to" },
	{ "original_destination", SCHEMA_WORD, FIELD(smtpproxy_listener, capture),
		WORDS({ "proxy", CAPTURE_NONE }, { "redirect", CAPTURE_REDIRECT }, { "tproxy", CAPTURE_TPROXY }),
		.fallback = "proxy",
		.help = "how the destination is known. proxy: a PROXY v1 or v2 header names it, only from addresses in "
			"`trusted`; redirect: the kernel redirected the connection (nftables `redirect`); tproxy: the "
			"kernel delivered it as it was (nftables `tproxy`), which needs CAP_NET_ADMIN" },
	{ "next_hop", SCHEMA_ADDRESS, FIELD(smtpproxy_listener, next_hop),
		.help = "all mail of this listener goes there, whatever destination the sender wanted" },
	{ "trusted", SCHEMA_ITEMS, ARRAY(smtpproxy_listener, trusted, trusted_count), .item = SCHEMA_NET,
		.max = NETS_MAX,
		.help = "networks that may send PROXY headers and use XCSSLTX; smtpproxy closes all other connections "
			"at once" },
	{ "clients", SCHEMA_ITEMS, ARRAY(smtpproxy_listener, clients, client_count), .item = SCHEMA_NET,
		.max = NETS_MAX,
		.help = "deliver: queue: networks of the organisation's own senders, which may send mail to anybody; "
			"behind PROXY, the address in the header counts" },
	{ "accept", SCHEMA_ITEMS, ARRAY(smtpproxy_listener, accept, accept_count), .item = SCHEMA_STRING,
		.max = NETS_MAX, .unique = SCHEMA_ONCE_IN_LIST,
		.help = "deliver: queue: domains of recipients to which everybody may send mail, as `example.org`, or "
			"`*.example.org` for its subdomains. smtpproxy refuses a recipient whom the recipient's mail "
			"server refuses. All other recipients get 550, unless the sender is in `clients`. A listener "
			"has `clients`, or `accept`, or both" },
	{ "hooks", SCHEMA_ITEMS, ARRAY(smtpproxy_listener, hooks, hook_count), .item = SCHEMA_NAME, .max = HOOKS_MAX,
		.refers_to = "hooks", .unique = SCHEMA_ONCE_IN_LIST,
		.help = "names of `hooks` that judge the mail of this listener, in this order; with deliver: queue, "
			"before the mail is stored. Senders here are not offered CHUNKING" },
	{ NULL },
};

static const struct schema_row hook_rows[] = {
	{ "name", SCHEMA_NAME, SCHEMA_REQUIRED, FIELD(smtpproxy_hook, name), .unique = SCHEMA_ONCE_IN_LIST,
		.help = "the name that listeners, logs and csslctl use" },
	{ "type", SCHEMA_WORD, FIELD(smtpproxy_hook, type),
		WORDS({ "milter", SMTPPROXY_HOOK_MILTER }, { "http", SMTPPROXY_HOOK_HTTP }), .fallback = "milter",
		.help = "milter: the protocol of sendmail's filters, up to version 6; it may refuse a sender, a "
			"recipient or a message, and change the header. The message is kept in memory meanwhile. http: "
			"a POST with the envelope as JSON when DATA comes; the message passes as without hooks" },
	{ "address", SCHEMA_ADDRESS, SCHEMA_REQUIRED, FIELD(smtpproxy_hook, address),
		.help = "where the hook listens, in clear" },
	{ "path", SCHEMA_STRING, FIELD(smtpproxy_hook, path), .fallback = "/",
		.help = "http: the path of the request" },
	{ "timeout", SCHEMA_DURATION_MS, FIELD(smtpproxy_hook, timeout_ms), RANGE(100, 5 * MINUTES, "30s"),
		.help = "the limit for the connection to the hook, and for each answer; a milter may ask for more by "
			"progress messages. All hooks of a listener together have: for a message 8 minutes less "
			"`data_timeout`; for MAIL 5 minutes, with deliver: relay less `turn_timeout`; for RCPT 4 "
			"minutes; for DATA 90 seconds" },
	{ "on_failure", SCHEMA_WORD, FIELD(smtpproxy_hook, on_failure),
		WORDS({ "tempfail", SMTPPROXY_TEMPFAIL }, { "accept", SMTPPROXY_ACCEPT },
			{ "reject", SMTPPROXY_REJECT }),
		.fallback = "tempfail",
		.help = "what happens when the hook cannot be reached, is too slow, or breaks its protocol. tempfail: "
			"the sender gets 451; accept: the mail goes on without the hook; reject: the sender gets 554" },
	{ NULL },
};

static void smtpproxy_check_listener(struct complaints *c, const struct node *map, const void *object)
{
	const struct smtpproxy_listener *l = object;
	for (size_t i = 0; i < l->accept_count; i++)
		if (!smtp_domain_pattern_is_good(l->accept[i]))
			complain_value(c, node_line(map, "accept"), "accept", l->accept[i], SCHEMA_DOMAIN);
	if (l->capture == CAPTURE_NONE && l->trusted_count == 0)
		complain(c, node_line(map, "address"), "trusted", "nothing",
			"the networks that send PROXY headers, because original_destination is proxy");
}

static const struct schema_row source_rows[] = {
	{ "address", SCHEMA_HOST, SCHEMA_REQUIRED, FIELD(smtpproxy_source, address), .unique = SCHEMA_ONCE_IN_LIST,
		.help = "an address of this host" },
	{ "weight", SCHEMA_COUNT, FIELD(smtpproxy_source, weight), RANGE(1, 1000, "1"),
		.help = "the share of new connections that this address gets, relative to the other addresses" },
	{ NULL },
};

static const struct schema_row receiver_rows[] = {
	{ "network", SCHEMA_NET, SCHEMA_REQUIRED, FIELD(smtpproxy_receiver, network),
		.help = "the addresses of these receivers" },
	{ "name", SCHEMA_STRING, FIELD(smtpproxy_receiver, name),
		.help = "the name that the receivers' certificates must have, and whose TLSA records count; `verify`, "
			"`dane` and `dane-only` need it" },
	{ "tls", SCHEMA_WORD, FIELD(smtpproxy_receiver, tls), .words = schema_some_tls_words, .fallback = "outward",
		.help = "as `tls` of `outward`, for these receivers; outward: as `outward` says" },
	{ "connections", SCHEMA_COUNT, FIELD(smtpproxy_receiver, connections), .max = 1e6,
		.help = "the most connections to each of them, instead of `connections_per_destination`" },
	{ NULL },
};

static void check_receiver(struct complaints *c, const struct node *map, const void *object)
{
	const struct smtpproxy_receiver *r = object;
	if (r->tls >= SMTPPROXY_TLS_VERIFY && !r->name)
		complain(c, node_line(map, "tls"), "name", "nothing",
			"the name of the certificate, because tls is verify, dane or dane-only");
}

#define DURATION(key, member, low, high, usual, text)                                                                  \
	{                                                                                                              \
		key, SCHEMA_DURATION_MS, FIELD(smtpproxy_outward, member), RANGE(low, high, usual), .help = text       \
	}

static const struct schema_row outward_rows[] = {
	{ "ports", SCHEMA_ITEMS, ARRAY(smtpproxy_outward, ports, port_count), .item = SCHEMA_COUNT, .min = 1,
		.max = 65535, .help = "the ports that destinations may have; without this key, only 25" },
	{ "any_port", SCHEMA_WORD, FIELD(smtpproxy_outward, any_port), SWITCHES, .fallback = "off",
		.help = "on: destinations may have any port; for tests" },
	{ "never", SCHEMA_ITEMS, ARRAY(smtpproxy_outward, never, never_count), .item = SCHEMA_ADDRESS, .max = NETS_MAX,
		.help = "destinations that lead back to smtpproxy, as the listeners of the cluster in front of it" },
	{ "local", SCHEMA_ITEMS, ARRAY(smtpproxy_outward, local, local_count), .item = SCHEMA_NET, .max = NETS_MAX,
		.help = "networks that are allowed as destinations although they are loopback or have addresses of "
			"this host; smtpproxy's own listeners are never allowed" },
	{ "sources", SCHEMA_LIST, ARRAY(smtpproxy_outward, sources, source_count), MAP(source_rows), .max = SOURCES_MAX,
		.help = "the pool of addresses that connections come from; each destination meets them in turn. "
			"Without this key, the kernel chooses" },
	{ "as_sender", SCHEMA_WORD, FIELD(smtpproxy_outward, as_sender), SWITCHES, .fallback = "off",
		.help = "on: each connection comes from the address of its sender, so that receivers see the sender's "
			"address. This needs CAP_NET_ADMIN, routes that lead the receivers' answers to this host, and "
			"the nftables rules of `tproxy`. Each sender then has connections of its own, with limits of "
			"their own. Instead of `sources`" },
	{ "receivers", SCHEMA_LIST, ARRAY(smtpproxy_outward, receivers, receiver_count),
		MAP(receiver_rows, check_receiver), .max = NETS_MAX,
		.help = "what is known of some receivers; the first row that has the address counts" },
	{ "tls", SCHEMA_WORD, FIELD(smtpproxy_outward, tls), .words = &schema_some_tls_words[SCHEMA_OUTWARD_TLS_WORDS],
		.fallback = "may",
		.help = "STARTTLS toward receivers, unless their row in `receivers` or `queue.domains` says otherwise. "
			"none: never; may: if the receiver offers it, with any certificate; encrypt: always, with any "
			"certificate; verify: always, with a certificate of a known authority for the receiver's name; "
			"dane: as the TLSA records of the receiver's name say (RFC 7672), or as may if there are none; "
			"dane-only: as dane, but without records no mail. Under may, mail goes in clear for half an "
			"hour after TLS has failed, or after three handshakes in a row were lost over at least five "
			"minutes. Under encrypt, verify and dane-only no mail is sent in clear. With deliver: relay "
			"only receivers in `receivers` have a name: others get no mail under verify and dane-only" },
	{ "keep_tls", SCHEMA_WORD, FIELD(smtpproxy_outward, keep_tls), SWITCHES, .fallback = "off",
		.help = "on: mail that came with TLS, as the PROXY header of the cluster says, goes on with TLS only. "
			"If the receiver has no TLS, the sender gets 421, or with deliver: queue the mail waits; only "
			"a row with `tls: none` sends such mail in clear. off: such mail may go on in clear, as `tls` "
			"says. Without this key: off, and a warning, for senders that demand TLS cannot see this" },
	{ "ca", SCHEMA_PATH, FIELD(smtpproxy_outward, ca),
		.help = "a PEM file of the authorities for `verify`; without this key, those of the system" },
	DURATION("keep_idle", idle_ms, 0, 5 * MINUTES, "2s",
		"smtpproxy keeps a connection without a transaction so long for the next transaction"),
	DURATION("connect_timeout", connect_ms, 100, 5 * MINUTES, "30s", "the limit for opening a connection"),
	DURATION("banner_timeout", banner_ms, 100, 10 * MINUTES, "5min",
		"the limit for the banner (RFC 5321 4.5.3.2.1)"),
	DURATION("command_timeout", command_ms, 100, 10 * MINUTES, "5min",
		"the limit for a reply to a command (RFC 5321 4.5.3.2.2 and 3)"),
	DURATION("data_timeout", data_ms, 100, 10 * MINUTES, "2min",
		"the limit for the reply to DATA (RFC 5321 4.5.3.2.4)"),
	DURATION("block_timeout", block_ms, 100, 10 * MINUTES, "3min",
		"the limit for the receiver to take a part of the content (RFC 5321 4.5.3.2.5)"),
	DURATION("end_timeout", end_ms, 100, 60 * MINUTES, "10min",
		"the limit for the reply to the end of the content (RFC 5321 4.5.3.2.6)"),
	{ "messages", SCHEMA_COUNT, FIELD(smtpproxy_outward, most_messages), RANGE(1, 1e6, "100"),
		.help = "a connection is closed after so many transactions" },
	{ NULL },
};

static const struct schema_row dns_rows[] = {
	{ "servers", SCHEMA_ITEMS, ARRAY(smtpproxy_dns, servers, server_count), .item = SCHEMA_ADDRESS, .max = 16,
		.help = "name servers that answer recursively, as 127.0.0.1:53; without this key, those of "
			"/etc/resolv.conf. Their answers are validated here, so they need not be trusted" },
	{ "trust_anchor", SCHEMA_PATH, FIELD(smtpproxy_dns, trust_anchor),
		.help = "a file of DS or DNSKEY records, as /usr/share/dns/root.key of Debian's dns-root-data, with "
			"which DNSSEC is validated. Without this key, no DNSSEC is validated; `dane` and `dane-only` "
			"need it" },
	{ "timeout", SCHEMA_DURATION_MS, FIELD(smtpproxy_dns, timeout_ms), RANGE(100, 5 * MINUTES, "20s"),
		.help = "the limit for the answer to one question" },
	{ NULL },
};

#define COUNT(key, member, low, usual, text)                                                                           \
	{                                                                                                              \
		key, SCHEMA_COUNT, FIELD(smtpproxy_limits, member), RANGE(low, 1e6, usual), .help = text               \
	}

static const struct schema_row limits_rows[] = {
	COUNT("sessions", sessions, 1, "10000",
		"the most connections of senders; a further connection gets 421. A destination that senders choose "
		"(no `next_hop`) gets no further connection while it has more connections than there are free places. "
		"So one destination alone gets half of the places"),
	COUNT("sessions_per_source", sessions_per_source, 1, "2000",
		"the most connections from one sender's address; behind PROXY v2, from the address in the header"),
	COUNT("connections_per_destination", connections, 1, "20",
		"the most connections to one destination. smtpproxy learns a lower limit from the receiver's refusals"),
	COUNT("destinations", destinations, 1, "10000",
		"the most destinations at a time; others get 421, or with deliver: queue they wait"),
	COUNT("transactions", transactions, 1, "10000",
		"the most client connections whose transactions are remembered for XCSSLTX"),
	{ "sender_timeout", SCHEMA_DURATION_MS, FIELD(smtpproxy_limits, sender_ms), RANGE(100, 60 * MINUTES, "5min"),
		.help = "the limit for the sender's next bytes (RFC 5321 4.5.3.2.7)" },
	{ "lease_timeout", SCHEMA_DURATION_MS, FIELD(smtpproxy_limits, lease_ms), RANGE(100, 60 * MINUTES, "30s"),
		.help = "the limit for a slow sender that holds a connection to a receiver while other senders wait "
			"for this receiver. Within one transaction the receiver may wait for the sender for so long, "
			"and one second more for each `least_rate` bytes; then the sender gets 421. Bytes that came "
			"fast give no time for later. While a sender with less than its share of the receiver's "
			"connections waits, a sender with more than its share has four times as long for a whole "
			"transaction, whatever it sends. With deliver: queue, `lease_timeout` and `least_rate` hold "
			"while more than half of `queue.memory` is used" },
	COUNT("least_rate", least_rate, 1, "500",
		"bytes a second; see `lease_timeout`. If smtpproxy holds a message in memory, the rate is at least "
		"1/600 of the message's memory a second"),
	{ "turn_timeout", SCHEMA_DURATION_MS, FIELD(smtpproxy_limits, turn_ms), RANGE(100, 5 * MINUTES, "4min"),
		.help = "MAIL waits at most so long for a connection, then it gets 451" },
	{ "stop_timeout", SCHEMA_DURATION_MS, FIELD(smtpproxy_limits, stop_ms), RANGE(100, 60 * MINUTES, "1min"),
		.help = "sessions that are still within a transaction so long after SIGTERM get 421. If the receiver "
			"has the whole message, its reply has the same time once more; without a reply the sender "
			"gets 421, and the message may come twice" },
	{ "replaced_timeout", SCHEMA_DURATION_MS, FIELD(smtpproxy_limits, replaced_ms),
		RANGE(100, 24 * 60 * MINUTES, "15min"),
		.help = "how long a replaced process waits for its last sessions; then it stops as after SIGTERM" },
	COUNT("errors", errors, 1, "20",
		"smtpproxy ends a session after so many refused commands since its last message that was taken"),
	{ "held_message", SCHEMA_SIZE, FIELD(smtpproxy_limits, held_message), RANGE(65536, 1 << 29, "32MiB"),
		.help = "the largest message of a listener with a milter, which keeps it in memory; a larger one gets "
			"552" },
	{ "held_total", SCHEMA_SIZE, FIELD(smtpproxy_limits, held_total), RANGE(65536, TIB, "256MiB"),
		.help = "the most bytes of all messages together that are kept in memory for milters; above it, "
			"messages get 452. While more than half is used, an address with several messages gets 452 "
			"when it has a quarter, and `lease_timeout` holds" },
	COUNT("hops", hops, 1, "100", "a message with more Received fields is in a loop, and gets 554"),
	{ NULL },
};

static void check_outward(struct complaints *c, const struct node *map, const void *object)
{
	const struct smtpproxy_outward *o = object;
	if (o->as_sender == CONF_ON && o->source_count > 0)
		complain(c, node_line(map, "sources"), "sources", "addresses", "none, because as_sender is on");
}

static const struct schema_row smtpproxy_rows[] = {
	{ "name", SCHEMA_STRING, SCHEMA_REQUIRED, FIELD(conf_smtpproxy, name),
		.help = "the host name that banner and replies show to senders" },
	{ "user", SCHEMA_STRING, FIELD(conf_smtpproxy, user),
		.help = "if root starts smtpproxy, the process becomes this user; required then" },
	{ "control", SCHEMA_SOCKET_PATH, FIELD(conf_smtpproxy, control),
		.help = "the UNIX socket of the control API, which csslctl asks" },
	{ "status", SCHEMA_SOCKET_PATH, FIELD(conf_smtpproxy, status),
		.help = "a UNIX socket for RAgent's dashboard (`mail_status` in the cluster file). Whoever may enter "
			"the socket's folder and connects gets counts as one JSON object: sessions, receivers and "
			"their limits, the queue. The counts have no addresses of mail or of clients, and nobody can "
			"change anything through this socket" },
	{ "handover", SCHEMA_SOCKET_PATH, FIELD(conf_smtpproxy, handover),
		.help = "the UNIX socket for `smtpproxy --replace`: a new process takes over the listening sockets, "
			"and the sessions of the old process go on there to their end. Not with deliver: queue, where "
			"one process owns the queue: restart smtpproxy instead" },
	{ "events", SCHEMA_PATH, FIELD(conf_smtpproxy, events),
		.help = "a file that gets one JSON line for each transaction; opened again at SIGHUP" },
	{ "log", SCHEMA_MAP, FIELD(conf_smtpproxy, log), MAP((const struct schema_row[]){ LOG_ROWS, { NULL } }),
		.help = "the log of the process" },
	{ "listeners", SCHEMA_LIST, SCHEMA_REQUIRED, ARRAY(conf_smtpproxy, listeners, listener_count),
		MAP(listener_rows, smtpproxy_check_listener), .max = LISTENERS_MAX, .help = "where senders come in" },
	{ "hooks", SCHEMA_LIST, ARRAY(conf_smtpproxy, hooks, hook_count), MAP(hook_rows), .max = HOOKS_MAX,
		.help = "programs that judge mail" },
	{ "outward", SCHEMA_MAP, FIELD(conf_smtpproxy, outward), MAP(outward_rows, check_outward),
		.help = "the side of the receivers" },
	{ "dns", SCHEMA_MAP, FIELD(conf_smtpproxy, dns), MAP(dns_rows),
		.help = "the name servers that smtpproxy asks; a change counts from the next start on" },
	{ "limits", SCHEMA_MAP, FIELD(conf_smtpproxy, limits), MAP(limits_rows), .help = "what senders may use" },
	{ "fairness", SCHEMA_WORD, FIELD(conf_smtpproxy, fairness), SWITCHES, .fallback = "on",
		.help = "on: senders to one destination take turns, transaction by transaction; off: a sender keeps "
			"its connection to the end of its session, for comparisons" },
	{ "deliver", SCHEMA_WORD, FIELD(conf_smtpproxy, deliver),
		WORDS({ "relay", SMTPPROXY_RELAY }, { "queue", SMTPPROXY_QUEUE }), .fallback = "relay",
		.help = "relay: each transaction goes to its receiver at once, and the receiver decides; queue: "
			"smtpproxy stores a message, says 250 when two servers have a copy of it, and delivers it "
			"after that" },
	{ "queue", SCHEMA_MAP, FIELD(conf_smtpproxy, queue), .map = &schema_smtpproxy_queue,
		.help = "the queue of deliver: queue" },
	{ NULL },
};

/* clang-format on */

bool conf_smtpproxy_has_port(const struct conf_smtpproxy *c, uint32_t port)
{
	for (size_t i = 0; i < c->outward.port_count; i++)
		if (c->outward.ports[i] == port)
			return true;
	return c->outward.any_port == CONF_ON || (c->outward.port_count == 0 && port == SMTP_PORT);
}

static void smtpproxy_check_queue(struct complaints *c, const struct node *map, const struct conf_smtpproxy *p)
{
	if (p->deliver != SMTPPROXY_QUEUE) {
		if (node_child(map, "queue"))
			complain(c, node_line(map, "queue"), "queue", "a map", "none, or the key 'deliver: queue'");
		return;
	}
	if (p->queue.backup_count != 2)
		complain(c, node_line(map, "deliver"), "queue.backups", "another number",
			"two servers, because deliver is queue");
	if (!p->queue.keys)
		complain(c, node_line(map, "deliver"), "queue.keys", "nothing", "a key file, because deliver is queue");
	if (p->queue.next_hop.ss_family == AF_UNSPEC && !conf_smtpproxy_has_port(p, p->queue.port))
		complain(c, node_line(map, "outward"), "ports", "others",
			"the port of mail servers among them, because queue.next_hop is not there");
	if (p->queue.memory < p->queue.message_size + 65536)
		complain(c, node_line(map, "queue"), "queue.memory", "less than a message",
			"at least message_size and 64 KiB");
	if (p->handover)
		complain(c, node_line(map, "handover"), "handover", "a path",
			"none, because deliver is queue: restart smtpproxy instead; senders wait meanwhile");
}

#define BIT(tls) (1u << SMTPPROXY_TLS_##tls)

/* The values that `tls` has in the file: a bit for each. */
static unsigned tls_values(const struct conf_smtpproxy *p)
{
	unsigned values = 1u << p->outward.tls;
	for (size_t i = 0; i < p->outward.receiver_count; i++)
		values |= 1u << p->outward.receivers[i].tls;
	for (size_t i = 0; i < p->queue.domain_count; i++)
		values |= 1u << p->queue.domains[i].tls;
	return values;
}

/* Whose mail does it take? */
static void check_door(struct complaints *c, const struct node *map, const struct conf_smtpproxy *p,
	const struct smtpproxy_listener *l)
{
	const bool queues = p->deliver == SMTPPROXY_QUEUE, has_either = l->accept_count + l->client_count > 0;
	if (queues && !has_either)
		complain(c, node_line(map, "address"), "accept", "nothing",
			"domains of recipients, or networks of senders in 'clients', because deliver is queue");
	if (!queues && has_either)
		complain(c, node_line(map, l->accept_count ? "accept" : "clients"),
			l->accept_count ? "accept" : "clients", "a list", "none, because deliver is relay");
	if (queues && l->next_hop.ss_family != AF_UNSPEC)
		complain(c, node_line(map, "next_hop"), "next_hop", "an address",
			"none, but one in 'queue' or 'queue.domains', because deliver is queue");
}

static void check_smtpproxy(struct complaints *c, const struct node *map, const void *object)
{
	const struct conf_smtpproxy *p = object;
	if (!smtp_domain_is_greeting(smtp_span_of(p->name), 0))
		complain_value(c, node_line(map, "name"), "name", p->name, "a host name, as mail.example.org");
	smtpproxy_check_queue(c, map, p);
	if (p->outward.keep_tls == CONF_ON && !(tls_values(p) & ~(BIT(NONE) | BIT(BY_ADDRESS))))
		complain(c, node_line(node_child(map, "outward"), "keep_tls"), "keep_tls", "on",
			"off, because tls is none");
	if (tls_values(p) & (BIT(DANE) | BIT(DANE_ONLY)) && !p->dns.trust_anchor)
		complain(c, node_line(map, "outward"), "dns.trust_anchor", "nothing",
			"a file of the root's keys, because tls is dane or dane-only");
	const struct node *n = node_child(map, "listeners")->first;
	for (size_t i = 0; i < p->listener_count; i++, n = n->next) {
		if (p->listeners[i].hook_count > 0 && p->fairness == CONF_OFF)
			complain(c, node_line(map, "fairness"), "fairness", "off", "on, because a listener has hooks");
		check_door(c, n, p, &p->listeners[i]);
	}
}

const struct schema_map schema_smtpproxy = { smtpproxy_rows, check_smtpproxy };

int conf_smtpproxy_parse(
	const char *text, size_t len, const char *name, struct conf_smtpproxy **out, char *error, size_t error_cap)
{
	return load_text(&schema_smtpproxy, sizeof **out, text, len, name, out, error, error_cap);
}

static void use_machine(struct conf_smtpproxy *c, uint64_t memory)
{
	c->machine = memory;
	if (c->queue.total == 0)
		c->queue.total = (memory ? memory : MEMORY_IF_UNKNOWN) / 2 / TOTAL_STEP * TOTAL_STEP;
}

int conf_smtpproxy_load(const char *path, struct conf_smtpproxy **out, char *error, size_t error_cap)
{
	const int r = load_file(&schema_smtpproxy, sizeof **out, path, out, error, error_cap);
	if (r == 0)
		use_machine(*out, machine_memory(""));
	return r;
}

void conf_smtpproxy_destroy(struct conf_smtpproxy *c)
{
	load_free(&schema_smtpproxy, c);
}

void conf_smtpproxy_memory_print(const struct conf_smtpproxy *c, FILE *out)
{
	const struct {
		const char *what, *key;
		uint64_t bytes;
	} parts[] = {
		{ "stored mail", "queue.total", c->queue.total },
		{ "mail that comes in", "queue.memory", c->queue.memory },
		{ "mail before its hooks", "limits.held_total", c->hook_count ? c->limits.held_total : 0 },
		{ "mail on its way", "queue.deliveries, of queue.message_size, for each destination",
			(uint64_t)c->queue.deliveries * c->queue.message_size },
	};
	char text[VALUE_TEXT_MAX];

	if (c->deliver != SMTPPROXY_QUEUE)
		return;
	fprintf(out, "memory: at most\n");
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (parts[i].bytes)
			fprintf(out, "  %-22s %10s   %s\n", parts[i].what, value_size_text(parts[i].bytes, text),
				parts[i].key);
	if (c->machine)
		fprintf(out, "  the process may use    %10s\n",
			value_size_text(c->machine / TOTAL_STEP * TOTAL_STEP, text));
}

void conf_smtpproxy_role_print(const struct conf_smtpproxy *c, FILE *out)
{
	if (c->deliver != SMTPPROXY_QUEUE || conf_line(&c->file, &c->queue.role))
		return;
	fprintf(out, "queue.role: owner, by default: a start waits for each Redis server that may hold messages\n"
		     "  if no other gateway has this queue, set it to alone\n");
}

const char *conf_smtpproxy_tls_gap(const struct conf_smtpproxy *c)
{
	int is_told = 0; /* which mail came with TLS */
	for (size_t i = 0; i < c->listener_count; i++)
		is_told |= c->listeners[i].capture == CAPTURE_NONE;
	if (!is_told || conf_line(&c->file, &c->outward.keep_tls) || !(tls_values(c) & (BIT(MAY) | BIT(DANE))))
		return NULL;
	return "outward.keep_tls: off, by default: mail that came with TLS may go on in clear";
}
