/* operations_doubles.h: in place of the answers of the control socket, functions that note their arguments. */
#ifndef CSSL_TESTS_OPERATIONS_DOUBLES_H
#define CSSL_TESTS_OPERATIONS_DOUBLES_H

#include "ragent/control/operations.h"

extern struct answers_noted {
	unsigned answers;
	enum control_failure failure;
	char reason[256];
	unsigned listeners, agents, connections_count, counter_sets, certificates, errors;
	char agent_state[16];
	uint64_t connections, hellos, agent_counter;
	struct connection_id id;
	char to[16];
	uint32_t epoch;
	uint64_t sessions;
	unsigned confirmed, unconfirmed;
	unsigned nodes;
	uint64_t number;
	struct control_agent agent;
	struct control_listener listener;
	uint64_t listener_counts[LISTENER_COUNTER_COUNT];
} got;

#endif
