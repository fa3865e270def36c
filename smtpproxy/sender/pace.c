/* pace.c: adds up the times in which it is the sender's turn. */
#include "smtpproxy/sender/pace.h"

#define MS_PER_SECOND 1000u

static uint64_t waited_ms(const struct pace *p, uint64_t now_ms)
{
	return p->waited_ms + (p->turn == PACE_SENDER ? now_ms - p->since_ms : 0);
}

uint64_t pace_all_ms(const struct pace *p, uint64_t now_ms)
{
	return p->all_ms + (p->turn == PACE_SENDER ? now_ms - p->since_ms : 0);
}

void pace_set_turn(struct pace *p, enum pace_turn turn, uint64_t now_ms)
{
	p->waited_ms = waited_ms(p, now_ms);
	p->all_ms = pace_all_ms(p, now_ms);
	p->since_ms = now_ms;
	p->turn = (uint8_t)turn;
}

void pace_count(struct pace *p, size_t bytes)
{
	p->bytes += bytes;
}

static uint64_t earned_ms(const struct pace *p, const struct pace_rules *rules)
{
	return p->bytes * MS_PER_SECOND / rules->least_rate;
}

void pace_settle(struct pace *p, const struct pace_rules *rules, uint64_t now_ms)
{
	const uint64_t waited = waited_ms(p, now_ms), earned = earned_ms(p, rules);
	p->waited_ms = waited > earned ? waited - earned : 0;
	p->all_ms = pace_all_ms(p, now_ms);
	p->since_ms = now_ms;
	p->bytes = 0;
}

uint64_t pace_left_ms(const struct pace *p, const struct pace_rules *rules, uint64_t now_ms)
{
	const uint64_t allowed = rules->patience_ms + earned_ms(p, rules);
	const uint64_t waited = waited_ms(p, now_ms);
	return waited < allowed ? allowed - waited : 0;
}
