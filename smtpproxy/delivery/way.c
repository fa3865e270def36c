/* way.c: a next hop of the file is one address. Otherwise the DNS is asked, and each of its addresses is judged before
 * it is tried: nobody's MX record leads mail to this host's own services. */
#include "smtpproxy/delivery/way.h"

#include "net/memory/container_of.h"
#include "net/report/log.h"
#include "smtpproxy/envelope/envelope.h"
#include "smtpproxy/policy/destination_rules.h"

static void on_found(struct exchangers *x)
{
	static const enum smtp_own whys[] = {
		[EXCHANGERS_FOUND] = SMTP_OWN_NO_RECEIVER, /* unless one of the addresses is good */
		[EXCHANGERS_NO_DOMAIN] = SMTP_OWN_NO_DOMAIN,
		[EXCHANGERS_NO_ADDRESS] = SMTP_OWN_NO_RECEIVER,
		[EXCHANGERS_NO_MAIL] = SMTP_OWN_NO_MAIL,
		[EXCHANGERS_LOOP] = SMTP_OWN_LOOP,
		[EXCHANGERS_BOGUS] = SMTP_OWN_DNS_BOGUS,
		[EXCHANGERS_FAILED] = SMTP_OWN_DNS_FAILED,
	};
	struct way *w = container_of(x, struct way, exchangers);
	w->why = whys[x->verdict];
	if (x->verdict != EXCHANGERS_FOUND)
		log_event(LOG_INFO, NULL, "no receivers found", "domain=%s reply=%s cause=%s", w->name,
			smtp_own_reply(w->why)->text, x->why);
	w->on_found(w);
}

int way_begin(struct way *w, const struct delivery_parts *parts, const char *name)
{
	const struct smtpproxy_queue *conf = &parts->conf->queue;
	w->parts = parts;
	w->name = name;
	w->known = line_name_domain(conf, name);
	w->exchangers.on_found = on_found;
	/* The file's next hops come first, that of the domain before that of all; then an address that the line was
	 * named after. */
	w->hop = WAY_HOP_OF_DOMAIN;
	if (w->known && w->known->next_hop.ss_family != AF_UNSPEC) {
		w->fixed = w->known->next_hop;
	} else if (conf->next_hop.ss_family != AF_UNSPEC) {
		w->hop = WAY_HOP_OF_QUEUE;
		w->fixed = conf->next_hop;
	} else if (line_name_address(w->name, &w->fixed) != 0) {
		w->fixed.ss_family = AF_UNSPEC;
	}
	if (w->fixed.ss_family != AF_UNSPEC)
		return WAY_KNOWN;
	const int r = exchangers_find(
		&w->exchangers, parts->worker, parts->resolver, name, parts->conf->name, (uint16_t)conf->port);
	return r < 0 ? r : WAY_ASKS;
}

static void set_tls(const struct way *w, struct destination_goal *goal)
{
	if (!w->known)
		return;
	goal->tls = w->known->tls;
	if (!w->known->name)
		return;
	goal->host = w->known->name;
	goal->trust = DNS_SECURE;
}

static const struct sockaddr *address_at(const struct way *w, unsigned at)
{
	return (const struct sockaddr *)&w->exchangers.at[at].to;
}

/* Leaves out addresses that mail must not go to. 1: there is a next one. */
static bool skip_bad(struct way *w)
{
	struct exchangers *x = &w->exchangers;
	while (w->next < x->count) {
		const enum destination_verdict verdict = destination_rules_judge(
			w->parts->rules, address_at(w, w->next), worker_now_ms(w->parts->worker));
		if (verdict == DESTINATION_ALLOWED)
			return true;
		log_event(LOG_INFO, NULL, "receiver not allowed", "domain=%s cause=%s", w->name,
			destination_verdict_text(verdict));
		w->parts->counters->loops += verdict == DESTINATION_OURSELVES;
		if (verdict == DESTINATION_OURSELVES) {
			exchangers_cut(x, w->next);
			w->why = SMTP_OWN_LOOP;
		} else {
			w->next++;
		}
	}
	return false;
}

bool way_next(struct way *w, struct destination_goal *goal)
{
	struct exchangers *x = &w->exchangers;
	*goal = (struct destination_goal){ .to = (const struct sockaddr *)&w->fixed };
	if (w->fixed.ss_family != AF_UNSPEC && w->next++ == 0) {
		set_tls(w, goal);
		return true;
	}
	if (!skip_bad(w))
		return false;
	goal->to = address_at(w, w->next);
	if (x->hosts.count > 0) {
		goal->host = x->hosts.at[x->at[w->next].host].host;
		goal->trust = x->trust;
	}
	w->next++;
	set_tls(w, goal);
	return true;
}

bool way_has_next(const struct way *w)
{
	return w->next < w->exchangers.count;
}

void way_forget(struct way *w)
{
	exchangers_forget(&w->exchangers);
}
