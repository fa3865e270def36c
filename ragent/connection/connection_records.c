/* connection_records.c: counts the records of each type in both directions, for the counters and the log line at the
 * end.
 */
#include <stddef.h>

#include "ragent/connection/connection_internal.h"

#define TYPES     4u
#define ROW(name) (offsetof(struct ragent_counters, name) / sizeof(counter))

void connection_count_records(struct connection *c, enum records_of whose, const struct tls_record_run *run)
{
	static const size_t bytes[] = {
		[RECORDS_OF_CLIENT] = ROW(client_bytes),
		[RECORDS_OF_SERVER] = ROW(server_bytes),
	};
	static const size_t by_type[][TYPES] = {
		[RECORDS_OF_CLIENT] = {
			ROW(client_change_cipher_spec),
			ROW(client_alert),
			ROW(client_handshake),
			ROW(client_application_data),
		},
		[RECORDS_OF_SERVER] = {
			ROW(server_change_cipher_spec),
			ROW(server_alert),
			ROW(server_handshake),
			ROW(server_application_data),
		},
	};
	counter *const counters = (counter *)&c->home->counters;
	struct listener_counters *of_listener = connection_counts(c);
	uint32_t *types = whose == RECORDS_OF_CLIENT ? c->client_types : c->server_types;

	for (unsigned i = 0; i < TYPES; i++) {
		if (run->by_type[i] == 0)
			continue;
		types[i] += run->by_type[i];
		counter_add(&counters[by_type[whose][i]], run->by_type[i]);
	}
	counter_add(&counters[bytes[whose]], run->len);
	counter_add(whose == RECORDS_OF_CLIENT ? &of_listener->client_bytes : &of_listener->server_bytes, run->len);
}
