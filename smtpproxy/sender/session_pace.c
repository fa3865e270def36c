/* session_pace.c: bounds the time for which a sender may keep its connection to the receiver, and the memory of its
 * message, while other senders wait for them. */
#include "smtpproxy/sender/session_pace.h"

#include "smtpproxy/sender/session_filter.h"
#include "smtpproxy/sender/session_life.h"
#include "smtpproxy/sender/session_store.h"

#define TAKE_S       600u  /* at the least rate, a sender needs so many seconds for all bytes of its message */
#define LEASES_MOST  4u    /* lease_timeouts of one transaction, of a sender with more than its share of connections */
#define SLOW_LOOK_MS 1000u /* how often to check whether others wait for a slow sender's connection */

/* Bytes that its message has of the memory that all sessions share. */
static uint64_t memory_taken(const struct session *s)
{
	return session_store_taken(s) + session_held_taken(s);
}

/* The more memory its message has, the faster the sender has to be. Else few senders could keep all of it for hours. */
static struct pace_rules pace_rules(const struct session *s)
{
	const struct smtpproxy_limits *limits = &s->home->conf->limits;
	const uint32_t rate = (uint32_t)(memory_taken(s) / TAKE_S);
	return (struct pace_rules){ .patience_ms = limits->lease_ms,
		.least_rate = rate > limits->least_rate ? rate : limits->least_rate };
}

static uint64_t time_left_ms(const struct session *s)
{
	const struct pace_rules rules = pace_rules(s);
	return pace_left_ms(&s->pace, &rules, worker_now_ms(s->home->worker));
}

/* A sender with more than its share of the connections: how much longer it may keep this one, whatever it sends. */
static uint64_t share_left_ms(const struct session *s)
{
	const uint64_t most_ms = (uint64_t)LEASES_MOST * s->home->conf->limits.lease_ms;
	const uint64_t all_ms = pace_all_ms(&s->pace, worker_now_ms(s->home->worker));
	if (!s->onward)
		return UINT64_MAX;
	return all_ms < most_ms ? most_ms - all_ms : 0;
}

/* Others wait for what this session has, and it is too slow, or has had more than its share for too long. */
static bool is_too_slow(const struct session *s)
{
	const bool is_wanted =
		s->home->queue ? body_room_is_short(&s->home->room) : destination_is_short(s->destination);

	if (time_left_ms(s) == 0 && (is_wanted || (session_held_taken(s) > 0 && body_room_is_short(&s->home->held))))
		return true;
	return share_left_ms(s) == 0 && destination_gives_too_much(s->destination, s->onward);
}

static uint64_t sooner(uint64_t a_ms, uint64_t b_ms)
{
	return a_ms < b_ms ? a_ms : b_ms;
}

/* Sets the deadline within a lease: when the sender has been silent for too long, or is too slow. A sender that is
 * too slow already is checked soon, because others may come to wait. A single byte does not delay the deadline. */
static void pace_expect(struct session *s)
{
	const uint64_t now_ms = worker_now_ms(s->home->worker), left_ms = sooner(time_left_ms(s), share_left_ms(s));
	const uint64_t silent_ms = s->heard_ms + s->home->conf->limits.sender_ms - now_ms;
	const uint64_t look_ms = left_ms > 0 ? left_ms : SLOW_LOOK_MS;
	if (left_ms == 0 && deadline_is_set(&s->deadline) && s->deadline.at_ms <= now_ms + SLOW_LOOK_MS)
		return;
	deadline_set(s->home->worker, &s->deadline, sooner(look_ms, silent_ms));
}

/* A lot of bytes that came fast are no reason to keep a connection, or memory, for long. While its message takes
 * memory, it is always the sender's turn. */
void session_expect_pace(struct session *s)
{
	const struct pace_rules rules = pace_rules(s);
	const uint64_t now_ms = worker_now_ms(s->home->worker);
	if (s->home->queue || memory_taken(s) > 0)
		pace_set_turn(&s->pace, PACE_SENDER, now_ms);
	pace_settle(&s->pace, &rules, now_ms);
	pace_expect(s);
}

void session_look_at_pace(struct session *s)
{
	if (worker_now_ms(s->home->worker) - s->heard_ms >= s->home->conf->limits.sender_ms) {
		session_end(s, SMTP_OWN_TIMED_OUT);
	} else if (is_too_slow(s)) {
		s->home->counters->too_slow++;
		session_end(s, SMTP_OWN_TOO_SLOW);
	} else {
		pace_expect(s);
	}
}
