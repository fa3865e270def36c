/* operations_doubles.c: answers of the control socket that are noted. */
#include <stdarg.h>
#include <string.h>

#include <check.h>

#include "tests/unit/ragent/control/operations_doubles.h"

struct answers_noted got;

void control_answer_status(struct control_request *r, const struct control_status *s)
{
	got.answers++;
	got.listeners = (unsigned)s->listener_count;
	got.agents = (unsigned)s->agent_count;
	got.connections = s->connections;
	snprintf(got.agent_state, sizeof got.agent_state, "%s", s->agents[0].state);
	ck_assert_uint_eq(s->agents[0].links, 1);
	ck_assert_uint_eq(s->listeners[0].address_count, 1);
	ck_assert_ptr_nonnull(strstr(s->listeners[0].addresses[0], "127.0.0.1:"));
	ck_assert_ptr_null(strstr(s->listeners[0].addresses[0], "127.0.0.1:0"));
}

void control_answer_listeners(struct control_request *r, const struct control_listener *at, size_t count)
{
	got.answers++;
	got.listeners = (unsigned)count;
	got.listener = at[0];
	for (size_t i = 0; i < at[0].counter_count && i < LISTENER_COUNTER_COUNT; i++)
		got.listener_counts[i] = at[0].counters[i].value;
}

void control_answer_certificates(struct control_request *r, const struct control_counters *sets, size_t count)
{
	got.answers++;
	for (size_t i = 0; i < count; i++) {
		got.errors += sets[i].error != NULL;
		for (size_t c = 0; c < sets[i].certificate_count; c++)
			got.certificates += sets[i].certificates[c]->not_after_s == 99;
	}
}

void control_answer_counters(struct control_request *r, const struct control_counters *sets, size_t count)
{
	got.answers++;
	got.counter_sets = (unsigned)count;
	for (size_t i = 0; i < sets[0].count; i++)
		if (strcmp(sets[0].at[i].name, "hellos") == 0)
			got.hellos = sets[0].at[i].value;
	for (size_t i = 1; i < count; i++) {
		got.errors += sets[i].error != NULL;
		if (sets[i].count)
			got.agent_counter = sets[i].at[0].value;
	}
}

void control_answer_connections(
	struct control_request *r, const struct connection_description *at, size_t count, enum control_more more)
{
	got.answers++;
	got.connections_count = (unsigned)count;
	if (count)
		got.id = at[0].id;
}

void control_answer_move(struct control_request *r, const struct control_moved *m)
{
	got.answers++;
	snprintf(got.to, sizeof got.to, "%s", m->to);
	got.epoch = m->epoch;
}

void control_answer_rest(struct control_request *r, const struct control_moved *m)
{
	got.answers++;
	snprintf(got.to, sizeof got.to, "rest");
	got.epoch = m->epoch;
}

void control_answer_agents(struct control_request *r, const struct control_agent *at, size_t count)
{
	got.answers++;
	got.agents = (unsigned)count;
	got.agent = at[0];
}

/* test_operations_sessions.c has these. */
void control_answer_sessions(
	struct control_request *r, const struct control_session *at, size_t count, enum control_more more)
{
	ck_abort();
}

void control_answer_session_count(
	struct control_request *r, uint64_t sessions, const struct control_holder *at, size_t count)
{
	ck_abort();
}

void control_answer_session(
	struct control_request *r, const struct control_session *s, const struct control_holder *at, size_t count)
{
	ck_abort();
}

void control_answer_revoke(struct control_request *r, const struct control_revoked *v)
{
	got.answers++;
	got.sessions = v->sessions;
	got.confirmed = (unsigned)v->confirmed_count;
	got.unconfirmed = (unsigned)v->unconfirmed_count;
}

void control_answer_metrics(
	struct control_request *r, const struct control_status *s, const struct control_counters *sets, size_t count)
{
	control_answer_counters(r, sets, count);
	got.agents = (unsigned)s->agent_count;
}

void control_answer_log_levels(struct control_request *r, const struct control_log_level *at, size_t count)
{
	ck_abort_msg("nobody asked for levels");
}

void control_answer_mail(struct control_request *r, const char *error, const char *text, size_t len)
{
	ck_abort_msg("test_operations_mail.c has these");
}

void control_answer_number(struct control_request *r, const char *name, uint64_t number)
{
	got.answers++;
	snprintf(got.to, sizeof got.to, "%s", name);
	got.number = number;
}

void control_answer_block(struct control_request *r, uint64_t ended, const char *const *unconfirmed, size_t count)
{
	ck_abort_msg("test_operations_ends.c has these");
}

void control_answer_blocks(struct control_request *r, struct blocked *blocked, uint64_t now_ms)
{
	ck_abort_msg("test_operations_ends.c has these");
}

void control_answer_nodes(struct control_request *r, const struct control_node_result *at, size_t count)
{
	got.answers++;
	got.nodes = (unsigned)count;
	for (size_t i = 0; i < count; i++)
		got.errors += at[i].error != NULL;
}

void control_fail(struct control_request *r, enum control_failure kind, const char *reason, ...)
{
	va_list args;

	got.answers++;
	got.failure = kind;
	va_start(args, reason);
	vsnprintf(got.reason, sizeof got.reason, reason, args);
	va_end(args);
}
