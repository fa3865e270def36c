/* rules.c: one function for each map. Each complaint names the line of the key that is easiest to change. */
#include "conf/rules.h"

#include <netinet/in.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/value.h"

/* Other nodes connect to this one, so it needs an address. */
static void check_reachable(
	struct complaints *c, const struct node *map, const char *key, const struct sockaddr_storage *a)
{
	if (a->ss_family == AF_UNIX)
		return;
	if (address_is_any((const struct sockaddr *)a) || address_port((const struct sockaddr *)a) == 0)
		complain_value(c, node_line(map, key), key, node_child(map, key)->text,
			"an address and port that others can connect to");
}

static void check_trusted(struct complaints *c, const struct node *map, enum conf_switch proxy_protocol, size_t trusted)
{
	if (proxy_protocol == CONF_ON && trusted == 0)
		complain(c, node_line(map, "proxy_protocol"), "trusted", "no network",
			"the networks that may send a PROXY header");
	if (proxy_protocol == CONF_OFF && trusted > 0)
		complain_value(c, node_line(map, "trusted"), "proxy_protocol", "off", "on, or no key 'trusted'");
}

void rules_health(struct complaints *c, const struct node *map, const void *object)
{
	const struct conf_health *h = object;
	char limit[VALUE_TEXT_MAX], value[VALUE_TEXT_MAX];
	if (h->suspect_ms <= h->ping_ms)
		complain_value(c, node_line(map, "suspect"), "suspect", value_duration_text(h->suspect_ms, value),
			"more than 'ping', which is %s", value_duration_text(h->ping_ms, limit));
	if (h->lost_ms <= h->suspect_ms)
		complain_value(c, node_line(map, "lost"), "lost", value_duration_text(h->lost_ms, value),
			"more than 'suspect', which is %s", value_duration_text(h->suspect_ms, limit));
}

static void check_control_address(struct complaints *c, const struct node *map, const struct conf_ragent *r)
{
	const struct sockaddr *a = (const struct sockaddr *)&r->control_address;
	const bool is_path = a->sa_family == AF_UNIX;
	if (!is_path && (!address_is_local(a) || address_port(a) == 0))
		complain_value(c, node_line(map, "control_address"), "control_address",
			node_child(map, "control_address")->text,
			"a loopback address and port, or unix:PATH: it has no TLS (put a listener in front "
			"of it)");
	if (is_path && r->control_proxy_protocol == CONF_OFF)
		complain(c, node_line(map, "control_address"), "control_proxy_protocol", "off",
			"on, as nothing else says who the client of a UNIX socket is");
	if (!r->control)
		complain(c, node_line(map, "control_address"), "control", "nothing",
			"a path, as the API is served on its UNIX socket first");
	if (!r->control_tokens)
		complain(c, node_line(map, "control_address"), "control_tokens", "nothing",
			"a path: without tokens no client can use it");
}

void rules_ragent(struct complaints *c, const struct node *map, const void *object)
{
	const struct conf_ragent *r = object;
	if (r->control_address.ss_family != 0)
		check_control_address(c, map, r);
	else if (r->control_tokens || r->control_proxy_protocol == CONF_ON)
		complain(c, map->line, "control_address", "nothing",
			"an address, as tokens or PROXY headers belong to it");
}

void rules_direct(struct complaints *c, const struct node *map, const void *object)
{
	const struct conf_direct *d = object;
	check_trusted(c, map, d->proxy_protocol, d->trusted_count);
}

void rules_agent(struct complaints *c, const struct node *map, const void *object)
{
	const struct conf_agent *a = object;
	check_reachable(c, map, "link", &a->link);
	check_reachable(c, map, "peer", &a->peer);
	if (a->peer.ss_family == AF_UNIX)
		complain_value(c, node_line(map, "peer"), "peer", node_child(map, "peer")->text,
			"an IP address and port (key 'peer_socket' is for UNIX sockets)");
	if (a->link_protection == LINK_TRUSTED && !address_is_local((const struct sockaddr *)&a->link) &&
		!a->trusted_because)
		complain_value(c, node_line(map, "link_protection"), "link_protection", "trusted",
			"sealed, as the link can leave this host (or key 'trusted_because' with the reason)");
	if (a->link_group && a->link.ss_family != AF_UNIX)
		complain_value(c, node_line(map, "link_group"), "link_group", a->link_group,
			"nothing, as 'link' is no UNIX socket");
	if (a->trusted_because && a->link_protection != LINK_TRUSTED)
		complain_value(c, node_line(map, "trusted_because"), "link_protection", "sealed",
			"trusted, or no key 'trusted_because'");
}

void rules_tls(struct complaints *c, const struct node *map, const void *object)
{
	const struct conf_tls *t = object;
	if (t->version_min > t->version_max)
		complain_value(
			c, node_line(map, "version_max"), "version_max", "1.2", "at least 'version_min', which is 1.3");
	if (t->client_certificate != CONF_CLIENT_CERT_NONE && !t->client_ca)
		complain(c, node_line(map, "client_certificate"), "client_ca", "nothing",
			"a path, as client certificates are asked for");
	if (t->client_certificate == CONF_CLIENT_CERT_NONE && t->client_ca)
		complain_value(c, node_line(map, "client_ca"), "client_certificate", "none",
			"optional or required, or no key 'client_ca'");
	if (t->client_crl && !t->client_ca)
		complain_value(c, node_line(map, "client_crl"), "client_crl", node_child(map, "client_crl")->text,
			"nothing, as no client certificate is asked for");
	if (t->tls12_tickets == CONF_ON && t->version_min > 0x0303)
		complain_value(
			c, node_line(map, "tls12_tickets"), "tls12_tickets", "on", "off, as TLS 1.2 is not allowed");
}

static enum service_start start_of(enum conf_service service)
{
	return service_traits[service].start;
}

/* Nobody can tell before TLS which protocol its ALPN will name. */
static void check_service(struct complaints *c, const struct node *map, const struct conf_listener *l)
{
	const bool may_be_clear = start_of(l->service) == SERVICE_MAY_START_AS_SMTP;
	if (may_be_clear && !l->smtp.hostname)
		complain(c, map->line, "hostname", "nothing",
			"a name under 'smtp': the one that every agent says to clients of '%s'", l->name);
	if (!may_be_clear && node_child(map, "smtp"))
		complain(c, node_line(map, "smtp"), "smtp", "a map", "nothing, as the service of '%s' is %s", l->name,
			service_traits[l->service].name);
	const struct node *n = l->alpn_count > 0 ? node_child(map, "alpn")->first : NULL;
	for (size_t i = 0; i < l->alpn_count; i++, n = n->next)
		if (start_of(l->alpn[i].service) != start_of(l->service))
			complain_value(c, node_line(n, "service"), "service", node_child(n, "service")->text,
				"one that begins as the listener's, which is %s", service_traits[l->service].name);
}

/* A service of clients that agreed on a protocol is for these only. */
static void check_protocols(struct complaints *c, const struct node *map, const struct conf_listener *l)
{
	const char *needed = service_protocol(l->service);
	if (needed)
		complain_value(c, node_line(map, "service"), "service", service_traits[l->service].name,
			"another one: this is for a row of alpn with the protocol %s", needed);
	const struct node *n = l->alpn_count > 0 ? node_child(map, "alpn")->first : NULL;
	for (size_t i = 0; i < l->alpn_count; i++, n = n->next) {
		needed = service_protocol(l->alpn[i].service);
		if (needed && strcmp(needed, l->alpn[i].protocol) != 0)
			complain_value(c, node_line(n, "protocol"), "protocol", l->alpn[i].protocol,
				"%s, as the service is %s", needed, service_traits[l->alpn[i].service].name);
	}
}

static void check_capture(struct complaints *c, const struct node *map, const struct conf_listener *l)
{
	const struct node *how = node_child(map, "original_destination");
	if (l->capture == CAPTURE_NONE)
		return;
	if (l->proxy_protocol == CONF_ON)
		complain_value(c, how->line, "original_destination", how->text,
			"none, as 'proxy_protocol' is on: the PROXY header names the destination");
	for (size_t i = 0; i < l->listen.count; i++)
		if (l->listen.at[i].ss_family == AF_UNIX)
			complain_value(c, how->line, "original_destination", how->text,
				"none, as nothing is led to a UNIX socket of 'listen'");
}

void rules_listener(struct complaints *c, const struct node *map, const void *object)
{
	const struct conf_listener *l = object;
	check_trusted(c, map, l->proxy_protocol, l->trusted_count);
	check_capture(c, map, l);
	check_service(c, map, l);
	check_protocols(c, map, l);
	for (const struct node *n = l->alpn_count > 0 ? node_child(map, "alpn")->first : NULL; n; n = n->next) {
		const struct node *protocol = node_child(n, "protocol");
		if (strlen(protocol->text) > 255) /* RFC 7301 3.1: one length byte */
			complain_value(c, protocol->line, "protocol", protocol->text, "at most 255 bytes");
	}
}

void rules_broadcast(struct complaints *c, const struct node *map, const void *object)
{
	const struct conf_broadcast *b = object;
	if (b->replicas > 0 && b->live == CONF_LIVE_BROADCAST)
		complain(c, node_line(map, node_child(map, "live") ? "live" : "replicas"), "live", "broadcast",
			"carried, as live keys would go to every agent while sessions go to %u", (unsigned)b->replicas);
}

static bool is_used_directly(const struct conf *conf, const struct conf_listener *l)
{
	for (size_t i = 0; i < conf->agent_count; i++) {
		for (size_t j = 0; j < conf->agents[i].direct_count; j++)
			if (strcmp(conf->agents[i].direct[j].listener, l->name) == 0)
				return true;
	}
	return false;
}

static const struct node *rules_nth(const struct node *map, const char *key, size_t n)
{
	const struct node *list = node_child(map, key), *item = list ? list->first : NULL;
	for (; item && n > 0; n--)
		item = item->next;
	return item;
}

/* A mail server that takes every client for an agent, and relays for the agents, relays for everybody. There is no
 * XCLIENT for mail in clear. */
static bool must_know_clients(const struct conf_listener *l)
{
	const bool by_xclient = l->smtp.xclient == CONF_ON && l->smtp.starttls != SMTP_TLS_OFFER;
	return start_of(l->service) == SERVICE_MAY_START_AS_SMTP &&
	       l->smtp.client_address != CONF_CLIENT_ADDRESS_HIDDEN && !by_xclient;
}

/* With `reuse`, the pool would give one client's connection to another client of a service that does not share. */
static void check_backend(struct complaints *c, const struct node *map, const struct conf *conf,
	const struct conf_listener *l, const char *name, enum conf_service service)
{
	const struct conf_backend *b = conf_backend_find(conf, name);
	const struct node *n = b ? rules_nth(map, "backends", (size_t)(b - conf->backends)) : NULL;
	const char *what = l->capture != CAPTURE_NONE ? "where its clients wanted to go"
						      : "its clients (or 'client_address: hidden' under 'smtp')";
	if (b && b->reuse == CONF_ON && service_traits[service].sharing != SERVICE_SHARES_BACKENDS)
		complain_value(c, node_line(n, "reuse"), "reuse", "on",
			"off, or another backend for '%s': clients of service %s do not share connections", l->name,
			service_traits[service].name);
	if (b && b->proxy_v2 == CONF_OFF && (l->capture != CAPTURE_NONE || must_know_clients(l)))
		complain_value(c, node_line(n, "proxy_v2"), "proxy_v2", "off",
			"on, as the backend of '%s' must know %s", l->name, what);
}

static void check_captured_directly(
	struct complaints *c, const struct node *map, const struct conf *conf, const struct conf_listener *l)
{
	const struct node *how = node_child(map, "original_destination");
	if (l->capture != CAPTURE_NONE && is_used_directly(conf, l))
		complain_value(c, how->line, "original_destination", how->text,
			"none, as an agent has '%s' under 'direct', and only RAgents ask the kernel", l->name);
}

/* Law 14: RAgent must not be able to read what agents can. */
static void check_users(struct complaints *c, const struct node *agent, const char *user, const struct conf *conf)
{
	for (size_t i = 0; user && i < conf->ragent_count; i++) {
		const char *of_ragent = conf->ragents[i].user ? conf->ragents[i].user : CONF_RAGENT_USER_DEFAULT;
		if (strcmp(user, of_ragent) == 0)
			complain_value(c, node_line(agent, "user"), "user", user,
				"another one than that of RAgent '%s'", conf->ragents[i].name);
	}
}

/* --- overlapping addresses --- */

/* A process that listens on an address twice would not start; processes on different hosts may have the same address.
 * 0.0.0.0:443 takes the port on every IPv4 address, also on 10.0.0.1; [::]:443 takes it on IPv6 addresses only
 * (net/loop/listener.c). If two keys overlap, the complaint is about the later one. Port 0 is a different port each
 * time. UNIX sockets have no port. */
static bool rules_overlaps(const struct sockaddr_storage *one, const struct sockaddr_storage *other)
{
	const struct sockaddr *a = (const struct sockaddr *)one, *b = (const struct sockaddr *)other;

	return a->sa_family == b->sa_family && address_port(a) != 0 && address_port(a) == address_port(b) &&
	       (address_is_any(a) || address_is_any(b) || address_is_same_host(a, b));
}

/* @key has the address @late. @early is NULL, or the address that it overlaps with. */
static void rules_tell(struct complaints *c, const struct conf *conf, const char *key,
	const struct sockaddr_storage *late, const struct sockaddr_storage *early)
{
	char found[ADDRESS_TEXT_MAX], taken[ADDRESS_TEXT_MAX];

	if (early)
		complain_value(c, conf_line(&conf->file, late), key,
			address_format((const struct sockaddr *)late, found),
			"another port than %s in line %u, or one of the two alone: the same process listens on both",
			address_format((const struct sockaddr *)early, taken), conf_line(&conf->file, early));
}

/* Of the listeners' addresses before the @number-th of the @listener-th, the first that is in the way of @late. */
static const struct sockaddr_storage *find_listen(
	const struct conf *conf, size_t listener, size_t number, const struct sockaddr_storage *late)
{
	for (size_t i = 0; i <= listener; i++) {
		const size_t count = i < listener ? conf->listeners[i].listen.count : number;
		for (size_t j = 0; j < count; j++)
			if (rules_overlaps(late, &conf->listeners[i].listen.at[j]))
				return &conf->listeners[i].listen.at[j];
	}
	return NULL;
}

/* Each RAgent listens on the addresses of every listener, and on its own address for the control API. */
static void check_listened(struct complaints *c, const struct conf *conf)
{
	for (size_t i = 0; i < conf->listener_count; i++) {
		const struct conf_addresses *listen = &conf->listeners[i].listen;
		for (size_t j = 0; j < listen->count; j++)
			rules_tell(c, conf, "listen", &listen->at[j], find_listen(conf, i, j, &listen->at[j]));
	}
	for (size_t i = 0; i < conf->ragent_count; i++) {
		const struct sockaddr_storage *control = &conf->ragents[i].control_address;
		rules_tell(c, conf, "control_address", control, find_listen(conf, conf->listener_count, 0, control));
	}
}

static const struct sockaddr_storage *find_bound(
	const struct conf_agent *a, size_t directs, const struct sockaddr_storage *late)
{
	if (rules_overlaps(late, &a->link))
		return &a->link;
	if (rules_overlaps(late, &a->peer))
		return &a->peer;
	for (size_t i = 0; i < directs; i++)
		if (rules_overlaps(late, &a->direct[i].address))
			return &a->direct[i].address;
	return NULL;
}

static void check_overlaps(struct complaints *c, const struct conf *conf)
{
	check_listened(c, conf);
	/* No other key of the file may name an address that others connect to. Only a `direct` address can be the same.
	 */
	for (const struct conf_agent *a = conf->agents; a < conf->agents + conf->agent_count; a++)
		for (size_t i = 0; i < a->direct_count; i++)
			rules_tell(c, conf, "address", &a->direct[i].address, find_bound(a, i, &a->direct[i].address));
}

/* --- the whole file --- */

void rules_cluster(struct complaints *c, const struct node *map, const void *object)
{
	const struct conf *conf = object;
	for (size_t i = 0; i < conf->agent_count; i++)
		check_users(c, rules_nth(map, "agents", i), conf->agents[i].user, conf);
	for (size_t i = 0; i < conf->listener_count; i++) {
		const struct conf_listener *l = &conf->listeners[i];
		if (l->listen.count == 0 && !is_used_directly(conf, l))
			complain(c, rules_nth(map, "listeners", i)->line, "listen", "nothing",
				"a list of addresses, as no agent has '%s' under 'direct'", l->name);
		if (l->listen.count > 0 && conf->ragent_count == 0)
			complain(c, node_line(map, "ragents"), "ragents", "nothing",
				"a list of maps, as '%s' listens on RAgents", l->name);
		check_backend(c, map, conf, l, l->backend, l->service);
		for (size_t j = 0; j < l->alpn_count; j++)
			check_backend(c, map, conf, l, l->alpn[j].backend, l->alpn[j].service);
		check_captured_directly(c, rules_nth(map, "listeners", i), conf, l);
	}
	check_overlaps(c, conf);
}
