/* agents.c: one row of relaxed atomics per agent. No atomic here orders memory: a choice by a slightly old count is
 * still good.
 */
#include "ragent/dispatch/agents.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

struct agent_row {
	const struct conf_agent *conf;
	uint64_t hash; /* of its name */
	_Atomic double weight;
	_Atomic uint32_t links_up, links_suspect;
	_Atomic uint64_t boot_id;
	_Atomic uint32_t ready, leaving, cut_off;
	_Atomic uint64_t shares[AGENT_SHARE_COUNT];
	_Atomic uint64_t sessions;
	_Atomic uint32_t handshake_us, busy_permille, clock;
	_Atomic int64_t clock_offset_ms;
	char version[AGENT_VERSION_MAX], failing[AGENT_FAILING_MAX]; /* under agents.lock */
	struct drain drain;
};

struct agents {
	unsigned count;
	pthread_mutex_t lock; /* of texts, and of the begin and end of drains */
	_Atomic uint64_t generation;
	struct agent_row rows[];
};

#define GET(field)    atomic_load_explicit(&(field), memory_order_relaxed)
#define SET(field, v) atomic_store_explicit(&(field), (v), memory_order_relaxed)
#define ADD(field, n) atomic_fetch_add_explicit(&(field), (n), memory_order_relaxed)
#define SUB(field, n) atomic_fetch_sub_explicit(&(field), (n), memory_order_relaxed)

struct agents *agents_create(const struct conf *conf)
{
	if (conf->agent_count > AGENTS_MAX)
		return NULL;
	struct agents *a = calloc(1, sizeof *a + conf->agent_count * sizeof a->rows[0]);
	if (!a)
		return NULL;
	if (pthread_mutex_init(&a->lock, NULL) != 0) {
		free(a);
		return NULL;
	}
	a->count = (unsigned)conf->agent_count;
	for (unsigned i = 0; i < a->count; i++) {
		const struct conf_agent *c = &conf->agents[i];
		a->rows[i].conf = c;
		a->rows[i].hash = rendezvous_hash(c->name, strlen(c->name));
		SET(a->rows[i].weight, c->weight);
	}
	return a;
}

void agents_destroy(struct agents *a)
{
	if (!a)
		return;
	pthread_mutex_destroy(&a->lock);
	free(a);
}

unsigned agents_count(const struct agents *a)
{
	return a->count;
}

const struct conf_agent *agents_conf(const struct agents *a, int agent)
{
	return a->rows[agent].conf;
}

const char *agents_name(const struct agents *a, int agent)
{
	return agent == NO_AGENT ? "none" : a->rows[agent].conf->name;
}

int agents_find(const struct agents *a, const char *name)
{
	for (unsigned i = 0; i < a->count; i++)
		if (strcmp(a->rows[i].conf->name, name) == 0)
			return (int)i;
	return NO_AGENT;
}

static void generation_changes(struct agents *a)
{
	ADD(a->generation, 1);
}

uint64_t agents_generation(const struct agents *a)
{
	return GET(a->generation);
}

void agents_clean_text(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\' || *text == 127)
			*text = '?';
}

static void set_texts(struct agents *a, struct agent_row *r, const char *version, const char *failing)
{
	pthread_mutex_lock(&a->lock);
	snprintf(r->version, sizeof r->version, "%s", version ? version : "");
	snprintf(r->failing, sizeof r->failing, "%s", failing ? failing : "");
	agents_clean_text(r->version);
	agents_clean_text(r->failing);
	pthread_mutex_unlock(&a->lock);
}

/* --- links --- */

static void forget_leaving(struct agents *a, struct agent_row *r)
{
	pthread_mutex_lock(&a->lock);
	SET(r->leaving, 0);
	if (GET(r->drain.reason) == DRAIN_LEAVING)
		drain_end(&r->drain);
	pthread_mutex_unlock(&a->lock);
}

void agents_link_up(struct agents *a, int agent, uint64_t boot_id)
{
	struct agent_row *r = &a->rows[agent];
	uint64_t before = atomic_exchange_explicit(&r->boot_id, boot_id, memory_order_relaxed);

	if (ADD(r->links_up, 1) == 0 || before != boot_id) {
		SET(r->ready, 0);
		SET(r->handshake_us, 0);
		SET(r->clock, AGENT_CLOCK_UNKNOWN);
		set_texts(a, r, "", "");
		forget_leaving(a, r);
		generation_changes(a);
	}
}

void agents_link_down(struct agents *a, int agent)
{
	if (SUB(a->rows[agent].links_up, 1) == 1)
		generation_changes(a);
}

void agents_link_suspect(struct agents *a, int agent)
{
	ADD(a->rows[agent].links_suspect, 1);
}

void agents_link_recovered(struct agents *a, int agent)
{
	SUB(a->rows[agent].links_suspect, 1);
}

void agents_set_load(struct agents *a, int agent, const struct agent_load *load)
{
	struct agent_row *r = &a->rows[agent];

	SET(r->sessions, load->sessions);
	SET(r->cut_off, load->backends == AGENT_CUT_OFF);
	SET(r->handshake_us, load->handshake_us);
	SET(r->busy_permille, load->busy_permille);
	SET(r->clock_offset_ms, load->clock_offset_ms);
	SET(r->clock, load->clock);
	set_texts(a, r, load->version, load->failing_backends);
	if (atomic_exchange_explicit(&r->ready, load->ready == AGENT_READY, memory_order_relaxed) !=
		(load->ready == AGENT_READY))
		generation_changes(a);
}

/* --- drain and weight --- */

/* Each link of the agent says LEAVING; only the first counts. An operator's drain goes on unchanged. */
static bool is_news(struct agent_row *r, enum drain_reason reason)
{
	if (reason == DRAIN_BY_OPERATOR)
		return true;
	uint32_t said = atomic_exchange_explicit(&r->leaving, 1, memory_order_relaxed);
	return !said && drain_state(&r->drain) == DRAIN_NONE;
}

void agents_drain(struct agents *a, int agent, enum drain_reason reason, uint64_t now_ms, uint64_t timeout_ms)
{
	struct agent_row *r = &a->rows[agent];

	pthread_mutex_lock(&a->lock);
	if (is_news(r, reason))
		drain_begin(&r->drain, reason, now_ms, timeout_ms, GET(r->shares[AGENT_OWNERSHIPS]));
	pthread_mutex_unlock(&a->lock);
	generation_changes(a);
}

int agents_undrain(struct agents *a, int agent)
{
	struct agent_row *r = &a->rows[agent];
	int result = 0;

	pthread_mutex_lock(&a->lock);
	if (drain_state(&r->drain) == DRAIN_NONE || GET(r->drain.reason) != DRAIN_BY_OPERATOR)
		result = CSSL_E_STATE;
	else if (GET(r->leaving))
		SET(r->drain.reason, DRAIN_LEAVING); /* the drain goes on, and ends with the agent's next boot */
	else
		drain_end(&r->drain);
	pthread_mutex_unlock(&a->lock);
	generation_changes(a);
	return result;
}

struct drain *agents_drain_of(struct agents *a, int agent)
{
	assert(agent >= 0 && (unsigned)agent < a->count); /* NO_AGENT has no row */
	return &a->rows[agent].drain;
}

void agents_set_weight(struct agents *a, int agent, double weight)
{
	SET(a->rows[agent].weight, weight);
	generation_changes(a);
}

void agents_word(const struct agents *a, int agent, struct agent_word *out)
{
	const struct agent_row *r = &a->rows[agent];

	*out = (struct agent_word){ .boot_id = GET(r->boot_id),
		.sessions = GET(r->sessions),
		.handshake_us = GET(r->handshake_us),
		.busy_permille = GET(r->busy_permille),
		.ready = (uint8_t)GET(r->ready),
		.leaving = (uint8_t)GET(r->leaving),
		.weight = GET(r->weight),
		.weight_in_file = r->conf->weight };
	drain_say(&r->drain, &out->drain);
}

void agents_believe(struct agents *a, int agent, const struct agent_word *word)
{
	struct agent_row *r = &a->rows[agent];

	SET(r->boot_id, word->boot_id);
	SET(r->sessions, word->sessions);
	SET(r->handshake_us, word->handshake_us);
	SET(r->busy_permille, word->busy_permille);
	SET(r->ready, word->ready);
	SET(r->leaving, word->leaving);
	if (word->weight > 0 && word->weight_in_file == r->conf->weight)
		SET(r->weight, word->weight);
	pthread_mutex_lock(&a->lock);
	if (drain_state(&r->drain) == DRAIN_NONE) /* each worker brings this word; only the first counts */
		drain_believe(&r->drain, &word->drain);
	pthread_mutex_unlock(&a->lock);
	generation_changes(a);
}

bool agents_take_new(const struct agents *a, int agent)
{
	const struct agent_row *r = &a->rows[agent];

	return GET(r->ready) && drain_state(&r->drain) == DRAIN_NONE;
}

/* --- shares and choices --- */

void agents_enter(struct agents *a, int agent, enum agent_share share)
{
	ADD(a->rows[agent].shares[share], 1);
}

void agents_leave(struct agents *a, int agent, enum agent_share share)
{
	SUB(a->rows[agent].shares[share], 1);
}

uint64_t agents_share(const struct agents *a, int agent, enum agent_share share)
{
	return GET(a->rows[agent].shares[share]);
}

void agents_candidate(const struct agents *a, int agent, struct candidate *out)
{
	const struct agent_row *r = &a->rows[agent];

	out->agent = agent;
	out->node = (struct rendezvous_node){ r->hash, GET(r->weight) };
	out->connections = GET(r->shares[AGENT_CONNECTIONS]);
	out->handshakes = GET(r->shares[AGENT_HANDSHAKES]);
	out->handshake_us = GET(r->handshake_us);
}

static const char *state_of(const struct agent_row *r)
{
	if (GET(r->links_up) == 0)
		return "lost";
	if (drain_state(&r->drain) != DRAIN_NONE && GET(r->drain.reason) == DRAIN_LEAVING)
		return "leaving";
	if (drain_state(&r->drain) != DRAIN_NONE)
		return drain_state(&r->drain) == DRAIN_UNDER_WAY ? "draining" : "drained";
	if (GET(r->links_suspect) >= GET(r->links_up))
		return "suspect";
	if (!GET(r->ready))
		return "joining";
	return GET(r->cut_off) ? "no backend" : "ready";
}

void agents_status(const struct agents *a, int agent, struct agent_status *out)
{
	const struct agent_row *r = &a->rows[agent];

	out->name = r->conf->name;
	out->state = state_of(r);
	out->weight = GET(r->weight);
	out->links_up = GET(r->links_up);
	out->links_suspect = GET(r->links_suspect);
	out->connections = GET(r->shares[AGENT_CONNECTIONS]);
	out->handshakes = GET(r->shares[AGENT_HANDSHAKES]);
	out->sessions = GET(r->sessions);
	out->busy_permille = GET(r->busy_permille);
	out->handshake_us = GET(r->handshake_us);
	out->clock = GET(r->links_up) ? GET(r->clock) : AGENT_CLOCK_UNKNOWN;
	out->clock_offset_ms = GET(r->clock_offset_ms);
	pthread_mutex_t *lock = (pthread_mutex_t *)&a->lock; /* locking for a read does not change the table */
	pthread_mutex_lock(lock);
	memcpy(out->version, r->version, sizeof out->version);
	snprintf(out->failing_backends, sizeof out->failing_backends, "%s", out->links_up ? r->failing : "");
	pthread_mutex_unlock(lock);
}
