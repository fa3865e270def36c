/* dispatch.c: policies, affinity, hellos, and the choice by them. Each policy is one function; the memory of all
 * between picks is one struct under one lock, taken once per handshake.
 */
#include "ragent/dispatch/dispatch.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "proto/client_hello.h"
#include "proto/error.h"
#include "proto/first_bytes.h"
#include "proto/tls_record.h"

/* So few handshakes under way do not show that an agent has more than its share. */
#define LOCAL_ALLOWANCE      8.0
#define HANDSHAKE_US_UNKNOWN 1000u

typedef double cost_of(const struct candidate *c);

struct policy {
	enum conf_policy kind;
	double bound;
	pthread_mutex_t lock;
	uint64_t turn;
	double credit[AGENTS_MAX]; /* weighted: by agent */
};

static size_t pick_round_robin(struct policy *p, const struct candidate *c, size_t count, int affinity)
{
	return p->turn++ % count;
}

/* Smooth weighted round-robin: each agent earns its weight as credit; the agent with most credit is chosen, and pays
 * the credit of all. */
static size_t pick_weighted(struct policy *p, const struct candidate *c, size_t count, int affinity)
{
	double total = 0;
	size_t best = 0;

	for (size_t i = 0; i < count; i++) {
		p->credit[c[i].agent] += c[i].node.weight;
		total += c[i].node.weight;
		if (p->credit[c[i].agent] > p->credit[c[best].agent])
			best = i;
	}
	p->credit[c[best].agent] -= total;
	return best;
}

/* The least cost by weight; agents of equal cost take turns. */
static size_t pick_least(struct policy *p, const struct candidate *c, size_t count, cost_of *cost)
{
	size_t first = p->turn++ % count;
	size_t best = first;

	for (size_t n = 1; n < count; n++) {
		size_t i = (first + n) % count;
		if (cost(&c[i]) * c[best].node.weight < cost(&c[best]) * c[i].node.weight)
			best = i;
	}
	return best;
}

static double cost_connections(const struct candidate *c)
{
	return (double)(c->connections + c->handshakes);
}

static double cost_handshakes(const struct candidate *c)
{
	return (double)c->handshakes;
}

/* The expected time of the next handshake: the time of a recent one, for it and for each that waits already. */
static double cost_response(const struct candidate *c)
{
	uint32_t us = c->handshake_us ? c->handshake_us : HANDSHAKE_US_UNKNOWN;

	return (double)us * (double)(c->handshakes + 1);
}

/* Choose the affinity agent, unless it makes clearly more handshakes than its share. */
static size_t pick_local(struct policy *p, const struct candidate *c, size_t count, int affinity)
{
	double handshakes = 1, weight = 0;

	if (affinity < 0)
		return pick_least(p, c, count, cost_handshakes);
	if (p->bound == 0)
		return (size_t)affinity;
	for (size_t i = 0; i < count; i++) {
		handshakes += (double)c[i].handshakes;
		weight += c[i].node.weight;
	}
	double share = handshakes * c[affinity].node.weight / weight;
	if ((double)(c[affinity].handshakes + 1) <= p->bound * share + LOCAL_ALLOWANCE)
		return (size_t)affinity;
	return pick_least(p, c, count, cost_handshakes);
}

static const struct {
	const char *name;
	size_t (*pick)(struct policy *p, const struct candidate *c, size_t count, int affinity);
	cost_of *cost; /* where @pick is NULL: the least is chosen */
} kinds[] = {
	[CONF_ROUND_ROBIN] = { "round-robin", pick_round_robin },
	[CONF_WEIGHTED] = { "weighted", pick_weighted },
	[CONF_LEAST_CONNECTIONS] = { "least-connections", NULL, cost_connections },
	[CONF_SHORTEST_RESPONSE] = { "shortest-response", NULL, cost_response },
	[CONF_LOCAL] = { "local", pick_local },
};

struct policy *policy_create(enum conf_policy kind, double affinity_bound)
{
	struct policy *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->kind = kind;
	p->bound = affinity_bound;
	if (pthread_mutex_init(&p->lock, NULL) != 0) {
		free(p);
		return NULL;
	}
	return p;
}

void policy_destroy(struct policy *p)
{
	if (!p)
		return;
	pthread_mutex_destroy(&p->lock);
	free(p);
}

size_t policy_pick(struct policy *p, const struct candidate *candidates, size_t count, int affinity)
{
	pthread_mutex_lock(&p->lock);
	size_t picked = kinds[p->kind].pick ? kinds[p->kind].pick(p, candidates, count, affinity)
					    : pick_least(p, candidates, count, kinds[p->kind].cost);
	pthread_mutex_unlock(&p->lock);
	return picked;
}

const char *policy_name(enum conf_policy kind)
{
	return kinds[kind].name;
}

/* --- affinity: the key is the client's address without its port. An agent at its bound is skipped: the next in the
 * order is chosen --- */

struct bounded {
	const struct candidate *candidates;
	double total; /* connections, the new one included */
	double weight;
	double bound;
};

/* Some agent is always below the bound: not all agents can be above their fair share at once. */
static int bounded_has_room(const void *ctx, size_t index)
{
	const struct bounded *b = ctx;
	const struct candidate *c = &b->candidates[index];
	double share = b->total * c->node.weight / b->weight;

	return b->bound == 0 || (double)(c->connections + 1) <= ceil(b->bound * share);
}

int affinity_pick(const struct candidate *candidates, size_t count, const struct client_address *client, double bound)
{
	struct rendezvous_node nodes[AGENTS_MAX];
	struct bounded b = { .candidates = candidates, .total = 1, .bound = bound };

	for (size_t i = 0; i < count; i++) {
		nodes[i] = candidates[i].node;
		b.total += (double)candidates[i].connections;
		b.weight += candidates[i].node.weight;
	}
	uint64_t key = rendezvous_hash(client->bytes, client->len);
	return rendezvous_pick(nodes, count, key, bounded_has_room, &b);
}

/* --- listeners --- */

int front_init(struct front *f, size_t index, const struct conf *all)
{
	const struct conf_listener *conf = &all->listeners[index];

	f->index = index;
	f->beyond = conf_is_control(all, conf) ? CONF_CONTROL_PLACES : 0;
	f->conf = conf;
	f->handshake = policy_create(conf->handshake, conf->affinity_bound);
	f->resumption = policy_create(conf->resumption, conf->affinity_bound);
	f->preamble = policy_create(conf->handshake, conf->affinity_bound);
	atomic_init(&f->connections, 0);
	f->bound_count = conf->listen.count;
	f->bound = calloc(f->bound_count ? f->bound_count : 1, sizeof *f->bound);
	if (!f->handshake || !f->resumption || !f->preamble || !f->bound)
		return CSSL_E_NO_MEMORY;
	if (f->bound_count)
		memcpy(f->bound, conf->listen.at, f->bound_count * sizeof *f->bound);
	return 0;
}

void front_clear(struct front *f)
{
	policy_destroy(f->handshake);
	policy_destroy(f->resumption);
	policy_destroy(f->preamble);
	free(f->bound);
	f->handshake = f->resumption = f->preamble = NULL;
	f->bound = NULL;
	f->bound_count = 0;
}

bool front_moves(const struct front *f)
{
	return f->conf->migration == CONF_MIGRATION_ON;
}

bool front_hands_off(const struct front *f)
{
	return f->conf->mode == CONF_SF && front_moves(f);
}

/* --- hellos: one of our session ids, a ticket, or any PSK is an offer to resume --- */

static enum hello_offer offer_of(const struct client_hello *h, const uint8_t check_key[static SESSION_ID_CHECK_KEY_LEN])
{
	if (h->flags & (CLIENT_HELLO_HAS_PSK | CLIENT_HELLO_HAS_TICKET))
		return HELLO_RESUMING;
	/* a fresh TLS 1.3 hello carries a random id: only the check tells whether it is one of ours */
	if (h->session_id_len && session_id_check(h->session_id, h->session_id_len, check_key, NULL) == 0)
		return HELLO_RESUMING;
	return HELLO_FULL;
}

/* 0 or CSSL_E_TOO_LONG, of the whole records in @data. */
static int hello_watch(const uint8_t *data, size_t len)
{
	struct client_hello_watch w = { 0 };
	struct tls_record_header record;
	int r = 0;

	while (r == 0 && tls_record_scan(data, len, &record) == 0 && record.type == TLS_HANDSHAKE) {
		r = client_hello_watch(&w, data + TLS_RECORD_HEADER_LEN, record.length);
		data += TLS_RECORD_HEADER_LEN + record.length;
		len -= TLS_RECORD_HEADER_LEN + record.length;
	}
	return r;
}

int hello_look(const uint8_t *data, size_t len, const uint8_t check_key[static SESSION_ID_CHECK_KEY_LEN],
	uint8_t *scratch, enum hello_offer *offer)
{
	enum first_bytes what = first_bytes_judge(data, len);
	struct tls_record_header first;
	struct client_hello hello;

	if (what == FIRST_BYTES_INCOMPLETE)
		return HELLO_INCOMPLETE;
	if (what != FIRST_BYTES_HANDSHAKE)
		return CSSL_E_TYPE;
	if (tls_record_scan(data, len, &first) == TLS_RECORD_INCOMPLETE)
		return HELLO_INCOMPLETE;
	if (hello_watch(data, len) < 0)
		return CSSL_E_TOO_LONG;
	*offer = HELLO_FULL;
	int r = client_hello_scan(data, len, scratch, CLIENT_HELLO_MAX, &hello);
	if (r == 0)
		*offer = offer_of(&hello, check_key);
	return r == CLIENT_HELLO_INCOMPLETE && len < CLIENT_HELLO_MAX ? HELLO_INCOMPLETE : 0;
}

/* --- choices --- */

/* The candidates for a client, and which of them is its affinity agent: an index, or -1. */
struct choice {
	const struct candidate *at;
	size_t count;
	int affinity;
};

static struct choice choice_of(
	struct links *links, const struct front *f, const struct client_address *client, int except)
{
	struct choice c = { .at = links->candidates, .count = links_candidates(links, except) };

	c.affinity = affinity_pick(c.at, c.count, client, f->conf->affinity_bound);
	return c;
}

/* The same; @except only if there is no other. */
static struct choice choice_rather_than(
	struct links *links, const struct front *f, const struct client_address *client, int except)
{
	const struct choice c = choice_of(links, f, client, except);

	return c.count || except == NO_AGENT ? c : choice_of(links, f, client, NO_AGENT);
}

static int choice_pick(struct policy *p, const struct choice *c)
{
	return c->at[policy_pick(p, c->at, c->count, c->affinity)].agent;
}

int dispatch_hello(struct links *links, struct front *front, const struct client_address *client, enum hello_offer kind,
	int except, struct dispatch *out)
{
	const struct choice c = choice_rather_than(links, front, client, except);

	if (c.count == 0)
		return CSSL_E_NOT_FOUND;
	out->handshake_agent = choice_pick(kind == HELLO_RESUMING ? front->resumption : front->handshake, &c);
	out->affinity_agent = front_hands_off(front) && c.affinity >= 0 ? c.at[c.affinity].agent : out->handshake_agent;
	return 0;
}

int dispatch_preamble(struct links *links, struct front *front, const struct client_address *client, int except)
{
	const struct choice c = choice_rather_than(links, front, client, except);

	return c.count ? choice_pick(front->preamble, &c) : NO_AGENT;
}

int dispatch_owner(struct links *links, struct front *front, const struct client_address *client, int except)
{
	const struct choice c = choice_of(links, front, client, except);

	if (c.count == 0)
		return NO_AGENT;
	return front_hands_off(front) && c.affinity >= 0 ? c.at[c.affinity].agent : choice_pick(front->handshake, &c);
}

static struct candidate *find_candidate(struct links *links, size_t count, int agent)
{
	for (size_t i = 0; i < count; i++)
		if (links->candidates[i].agent == agent)
			return &links->candidates[i];
	return NULL;
}

int dispatch_home(struct links *links, struct front *front, const struct client_address *client, int owner)
{
	size_t count = links_candidates(links, NO_AGENT);
	struct candidate *own = find_candidate(links, count, owner);

	if (!own)
		return owner; /* a suspect agent could not hand it off */
	if (own->connections)
		own->connections--; /* or a full agent would send its own connections away */
	int i = affinity_pick(links->candidates, count, client, front->conf->affinity_bound);
	return i < 0 ? owner : links->candidates[i].agent;
}
