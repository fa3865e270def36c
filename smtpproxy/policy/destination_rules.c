/* destination_rules.c: checks the port, our listeners, and the addresses of this host. */
#include "smtpproxy/policy/destination_rules.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define FRESH_MS 10000u

struct destination_rules {
	const struct conf_smtpproxy *conf;
	struct ifaddrs *own;
	uint64_t read_ms;
};

struct destination_rules *destination_rules_create(const struct conf_smtpproxy *conf)
{
	struct destination_rules *r = calloc(1, sizeof *r);
	if (r)
		r->conf = conf;
	return r;
}

void destination_rules_destroy(struct destination_rules *r)
{
	if (!r)
		return;
	if (r->own)
		freeifaddrs(r->own);
	free(r);
}

void destination_rules_follow(struct destination_rules *r, const struct conf_smtpproxy *conf)
{
	r->conf = conf;
}

static void destination_rules_refresh(struct destination_rules *r, uint64_t now_ms)
{
	struct ifaddrs *own;
	if (r->own && now_ms - r->read_ms < FRESH_MS)
		return;
	if (getifaddrs(&own) < 0)
		return; /* the old ones are better than none */
	if (r->own)
		freeifaddrs(r->own);
	r->own = own;
	r->read_ms = now_ms;
}

static bool is_own(const struct destination_rules *r, const struct sockaddr *to)
{
	for (const struct ifaddrs *i = r->own; i; i = i->ifa_next) {
		const bool is_ip =
			i->ifa_addr && (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6);
		if (is_ip && address_is_same_host(i->ifa_addr, to))
			return true;
	}
	return address_is_local(to);
}

static bool is_listener(const struct conf_smtpproxy *c, const struct sockaddr *to, bool is_own_address)
{
	for (size_t i = 0; i < c->listener_count; i++) {
		const struct sockaddr *l = (const struct sockaddr *)&c->listeners[i].address;
		if (address_port(l) == address_port(to) &&
			(address_is_same_host(l, to) || (address_is_any(l) && is_own_address)))
			return true;
	}
	for (size_t i = 0; i < c->outward.never_count; i++) {
		const struct sockaddr *never = (const struct sockaddr *)&c->outward.never[i];
		if (address_is_same(never, to))
			return true;
	}
	return false;
}

static bool is_multicast(const struct sockaddr *to)
{
	uint8_t bytes[16];
	const size_t len = address_bytes(to, bytes);
	return (len == 4 && bytes[0] >= 224) || (len == 16 && bytes[0] == 0xff);
}

enum destination_verdict destination_rules_judge(
	struct destination_rules *r, const struct sockaddr *to, uint64_t now_ms)
{
	uint8_t bytes[16];
	if (address_bytes(to, bytes) == 0 || address_is_any(to) || is_multicast(to) || address_port(to) == 0)
		return DESTINATION_NOWHERE;
	destination_rules_refresh(r, now_ms);
	const bool own = is_own(r, to);
	if (is_listener(r->conf, to, own))
		return DESTINATION_OURSELVES;
	if (!conf_smtpproxy_has_port(r->conf, address_port(to)))
		return DESTINATION_BAD_PORT;
	if (own && !address_nets_have(r->conf->outward.local, r->conf->outward.local_count, to))
		return DESTINATION_LOCAL;
	return DESTINATION_ALLOWED;
}

const char *destination_verdict_text(enum destination_verdict v)
{
	static const char *const texts[] = {
		[DESTINATION_ALLOWED] = "allowed",
		[DESTINATION_BAD_PORT] = "its port is not allowed",
		[DESTINATION_OURSELVES] = "it leads back to smtpproxy",
		[DESTINATION_LOCAL] = "it is an address of this host",
		[DESTINATION_NOWHERE] = "it is not known",
	};
	return texts[v];
}

/* Recipients */

enum recipient_sender recipient_rules_sender(const struct smtpproxy_listener *l, const struct sockaddr *from)
{
	return address_nets_have(l->clients, l->client_count, from) ? RECIPIENT_OF_CLIENT : RECIPIENT_OF_STRANGER;
}

/* "user%other.example@ours.example": the server behind, which trusts us, may pass it on (Postfix refuses it from
 * strangers, too: allow_untrusted_routing). */
static bool names_a_route(struct smtp_span local)
{
	for (size_t i = 0; i < local.len; i++)
		if (local.at[i] && strchr("%!@", local.at[i]))
			return true;
	return false;
}

enum smtp_own recipient_rules_judge(
	const struct smtpproxy_listener *l, enum recipient_sender sender, const struct smtp_path *to)
{
	if (sender == RECIPIENT_OF_CLIENT || to->kind == SMTP_PATH_POSTMASTER)
		return SMTP_OWN_NONE;
	for (size_t i = 0; i < l->accept_count && !names_a_route(to->local); i++)
		if (smtp_domain_is_in(to->domain, l->accept[i]))
			return SMTP_OWN_NONE;
	return SMTP_OWN_RELAY_DENIED;
}
