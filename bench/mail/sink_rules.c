/* sink_rules.c: parses the rules and throws the dice. */
#include "bench/mail/sink_rules.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "smtp/span.h"

#define SECONDS_MAX 86400.0

static const char *const words[] = {
#define X(name, word) [SINK_STEP_##name] = word,
	SINK_STEPS(X)
#undef X
};

static int add_step(struct smtp_span word, uint32_t *steps)
{
	if (smtp_span_is(word, "all")) {
		*steps = ((1u << SINK_STEP_COUNT) - 1) & ~(1u << SINK_STEP_DECIDE);
		return 0;
	}
	for (unsigned i = 0; i < SINK_STEP_COUNT; i++) {
		if (smtp_span_is(word, words[i])) {
			*steps |= 1u << i;
			return 0;
		}
	}
	return CSSL_E_CONFIG;
}

/* A number of at most @max at the whole of @text. */
static int read_number(struct smtp_span text, double max, double *out)
{
	char word[32], *end;
	if (smtp_span_copy(text, word, sizeof word) < 0 || !word[0])
		return CSSL_E_CONFIG;
	*out = strtod(word, &end);
	return *end == 0 && *out >= 0 && *out <= max ? 0 : CSSL_E_CONFIG;
}

static int read_odds(struct smtp_span *value, double *odds)
{
	double percent = 100;
	const char *colon = value->len ? memrchr(value->at, ':', value->len) : NULL;
	if (colon) {
		struct smtp_span text = { colon + 1, value->len - (size_t)(colon + 1 - value->at) };
		if (read_number(text, 100, &percent) < 0)
			return CSSL_E_CONFIG;
		value->len = (size_t)(colon - value->at);
	}
	*odds = percent / 100;
	return 0;
}

static int read_reply(struct smtp_span value, struct sink_rule *rule)
{
	uint64_t code;
	if (value.len < 3 || smtp_span_copy(value, rule->reply, sizeof rule->reply) < 0)
		return CSSL_E_CONFIG;
	if (smtp_span_number((struct smtp_span){ value.at, 3 }, 599, &code) < 0 || code < 200)
		return CSSL_E_CONFIG;
	return value.len == 3 || value.at[3] == ' ' ? 0 : CSSL_E_CONFIG;
}

static int read_ms(struct smtp_span value, struct sink_rule *rule)
{
	double seconds;
	if (read_number(value, SECONDS_MAX, &seconds) < 0)
		return CSSL_E_CONFIG;
	rule->ms = (uint32_t)(seconds * 1000);
	return rule->ms > 0 || rule->kind == SINK_DELAYS ? 0 : CSSL_E_CONFIG;
}

/* A drop rule has no value: its steps are followed by the probability. */
static int read_value(struct smtp_span value, struct sink_rule *rule)
{
	double percent = 100;
	if (rule->kind == SINK_DROPS) {
		int r = value.len ? read_number(value, 100, &percent) : 0;
		rule->odds = percent / 100;
		return r;
	}
	if (read_odds(&value, &rule->odds) < 0)
		return CSSL_E_CONFIG;
	return rule->kind == SINK_REPLIES ? read_reply(value, rule) : read_ms(value, rule);
}

int sink_rules_add(struct sink_rules *all, enum sink_rule_kind kind, const char *text)
{
	struct smtp_span value = smtp_span_of(text), steps = smtp_span_until(&value, ':');
	struct sink_rule rule = { .kind = kind };
	if (all->count == SINK_RULES_MAX)
		return CSSL_E_FULL;
	if (steps.len == 0)
		return CSSL_E_CONFIG;
	while (steps.len > 0) {
		if (add_step(smtp_span_until(&steps, ','), &rule.steps) < 0)
			return CSSL_E_CONFIG;
	}
	if (rule.steps >> SINK_STEP_DECIDE & 1 && kind != SINK_DELAYS)
		return CSSL_E_CONFIG;
	if (read_value(value, &rule) < 0)
		return CSSL_E_CONFIG;
	all->rules[all->count++] = rule;
	return 0;
}

/* splitmix64; any seed will do, also 0. A number between 0 and 1. */
static double throw_dice(struct sink_rules *all)
{
	uint64_t z = all->dice += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)((z ^ z >> 31) >> 11) / (double)(1ull << 53);
}

struct sink_decision sink_rules_decide(struct sink_rules *all, enum sink_step step)
{
	struct sink_decision d = { 0 };
	for (unsigned i = 0; i < all->count; i++) {
		const struct sink_rule *rule = &all->rules[i];
		if (!(rule->steps >> step & 1) || throw_dice(all) >= rule->odds)
			continue;
		switch (rule->kind) {
		case SINK_DELAYS: d.delay_ms += rule->ms; break;
		case SINK_REPLIES: d.reply = d.reply ? d.reply : rule->reply; break;
		case SINK_DROPS: d.drops = 1; break;
		case SINK_TARPITS: d.tarpit_ms = rule->ms; break;
		}
	}
	return d;
}
