/* counters.h: RAgent's counters, in one table that feeds code, API and manual. Each worker has a set, and only its
 * thread writes it. Beside them, one counter per end reason (proto/end_reason.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/report/time_counters.h"
#include "proto/end_reason.h"

/* How long nobody had a connection (connection_order.c). */
#define LATENCY_BUCKETS(B, X, name)                                                                                    \
	B(X, name, 250us, 250, "up to 250 us")                                                                         \
	B(X, name, 1ms, 1000, "up to 1 ms")                                                                            \
	B(X, name, 4ms, 4000, "up to 4 ms")                                                                            \
	B(X, name, 16ms, 16000, "up to 16 ms")                                                                         \
	B(X, name, 64ms, 64000, "up to 64 ms")                                                                         \
	B(X, name, 256ms, 256000, "up to 256 ms")                                                                      \
	B(X, name, 1024ms, 1024000, "up to 1024 ms")
#define LATENCY_ROWS(X, latency, of)                                                                                   \
	X(latency##_sum_us, MONOTONIC, "sum of the times " of)                                                         \
	TIME_ROWS(X, latency, LATENCY_BUCKETS)

/* How long clients of a lost agent waited (connection_agent.c: agent_end_pause). */
#define TAKEOVER_BUCKETS(B, X, name)                                                                                   \
	B(X, name, 2ms, 2000, "up to 2 ms")                                                                            \
	B(X, name, 4ms, 4000, "up to 4 ms")                                                                            \
	B(X, name, 8ms, 8000, "up to 8 ms")                                                                            \
	B(X, name, 16ms, 16000, "up to 16 ms")                                                                         \
	B(X, name, 32ms, 32000, "up to 32 ms")                                                                         \
	B(X, name, 64ms, 64000, "up to 64 ms")                                                                         \
	B(X, name, 128ms, 128000, "up to 128 ms")                                                                      \
	B(X, name, 256ms, 256000, "up to 256 ms")                                                                      \
	B(X, name, 512ms, 512000, "up to 512 ms")                                                                      \
	B(X, name, 1024ms, 1024000, "up to 1024 ms")

/* How long drains took (mover.c). */
#define DRAIN_BUCKETS(B, X, name)                                                                                      \
	B(X, name, 250ms, 250000, "up to 250 ms")                                                                      \
	B(X, name, 1s, 1000000, "up to 1 s")                                                                           \
	B(X, name, 4s, 4000000, "up to 4 s")                                                                           \
	B(X, name, 16s, 16000000, "up to 16 s")                                                                        \
	B(X, name, 64s, 64000000, "up to 64 s")                                                                        \
	B(X, name, 256s, 256000000, "up to 256 s")

extern const struct time_bucket latency_buckets[], takeover_buckets[], drain_buckets[];

/* X(name, kind, help). Counted of all agents together, and of each: the one that took the connection, or let it go to
 * rest. */
#define OWNERSHIP_COUNTERS(X)                                                                                          \
	LATENCY_ROWS(X, latency_hand_off, "from the end of a handshake to the adoption elsewhere")                     \
	LATENCY_ROWS(X, latency_move, "from the command to move to the adoption")                                      \
	LATENCY_ROWS(X, latency_drain, "from the command to leave a draining agent to the adoption")                   \
	LATENCY_ROWS(X, latency_wake, "from the record that wakes a resting connection to the adoption")               \
	LATENCY_ROWS(X, latency_takeover, "from the loss of an owner, or the next record, to the adoption")            \
	LATENCY_ROWS(X, latency_rest, "from the command to rest to the letting go")

/* X(name, kind, help) */
#define RAGENT_COUNTERS(X)                                                                                             \
	X(connections_accepted, MONOTONIC, "client connections accepted")                                              \
	X(connections_open, GAUGE, "client connections now")                                                           \
	X(connections_resting, GAUGE, "connections that no agent owns now")                                            \
	X(connections_waiting, GAUGE, "connections that wait for an agent now")                                        \
	X(client_queued_bytes, GAUGE, "record bytes that clients have not taken yet")                                  \
	X(kept_bytes, GAUGE, "bytes kept for connections: what waits, either way, or could be asked again")            \
	X(kept_given_up, MONOTONIC, "connections that cannot ask again after a loss, because too much was kept")       \
	X(logs_given_up, MONOTONIC, "connections that for a second could not outlive a death, for lack of memory")     \
	X(kept_ended, MONOTONIC, "connections ended because too much was kept, and they kept most")                    \
	X(link_queued_bytes, GAUGE, "bytes that links have not taken yet")                                             \
	X(table_full, MONOTONIC, "slabs of connections that end if RAgent dies: its memory for that was full")         \
	X(suspects_refused, MONOTONIC, "connections closed: clients of the source crashed RAgent twice")               \
	X(proxy_untrusted, MONOTONIC, "connections closed: PROXY listener, source not trusted")                        \
	X(proxy_malformed, MONOTONIC, "connections closed: PROXY header missing or malformed")                         \
	X(hellos, MONOTONIC, "first records dispatched to a handshake agent")                                          \
	X(hellos_resuming, MONOTONIC, "hellos that offer a resumption")                                                \
	X(hellos_too_long, MONOTONIC, "hellos refused: they claim more than 32 KiB")                                   \
	X(hellos_held, MONOTONIC, "hellos held back, because no agent took anything")                                  \
	X(storms, MONOTONIC, "times when many handshakes were under way while established clients sent records")       \
	X(handshakes_under_way, GAUGE, "clients whose handshake has begun and not ended")                              \
	X(handshakes_refused, MONOTONIC, "hellos refused: too many handshakes under way, or of one source")            \
	X(handshakes_displaced, MONOTONIC, "handshakes ended because another needed their place")                      \
	X(preambles, MONOTONIC, "service smtp: clients that began in clear")                                           \
	X(preambles_under_way, GAUGE, "clients of service smtp that have not said STARTTLS yet")                       \
	X(preambles_refused, MONOTONIC, "preambles refused: too many under way, or of one source")                     \
	X(preambles_displaced, MONOTONIC, "preambles ended because another needed their place")                        \
	X(preambles_restarted, MONOTONIC, "preambles begun again on another agent after a loss")                       \
	X(preambles_lost, MONOTONIC, "preambles ended because their agent was lost behind the banner")                 \
	X(connections_relayed, GAUGE, "clients whose mail goes on in clear, by their listener's leave")                \
	X(starttls_done, MONOTONIC, "STARTTLS answered, and TLS begun")                                                \
	X(starttls_injections, MONOTONIC, "clients reset: bytes in clear came where TLS had to begin")                 \
	X(opens_refused, MONOTONIC, "handshakes that an agent refused to begin")                                       \
	X(handshakes_kept, MONOTONIC, "handshakes whose agent stayed owner")                                           \
	X(handed_off, MONOTONIC, "connections that a handshake agent handed off")                                      \
	X(adopted, MONOTONIC, "connections that an agent adopted")                                                     \
	X(adopts_refused, MONOTONIC, "adoptions refused")                                                              \
	X(moves_asked, MONOTONIC, "moves commanded")                                                                   \
	X(moves_done, MONOTONIC, "moves commanded and done")                                                           \
	X(moves_refused, MONOTONIC, "moves commanded and refused or failed")                                           \
	X(moves_overdue, MONOTONIC, "moves that the owner neither made nor refused in time")                           \
	X(rested, MONOTONIC, "idle connections that their agent gave back until their next record")                    \
	X(rebalanced, MONOTONIC, "connections that went where their client's address belongs now")                     \
	X(takeovers_restarted, MONOTONIC, "handshakes begun again on another agent after a loss")                      \
	X(takeovers_rested, MONOTONIC, "connections of a lost agent that wait for their next record")                  \
	X(takeovers_ended, MONOTONIC,                                                                                  \
		"connections ended because their agent was lost: reset, or an alert in the clear")                     \
	X(takeovers_adopted, MONOTONIC, "connections of a lost agent that needed another at once")                     \
	X(takeovers_delayed, MONOTONIC, "takeovers held back by takeovers_per_second")                                 \
	X(takeovers_poisoned, MONOTONIC, "connections that met two losses without an answer between them")             \
	X(takeover_pause_ms, MONOTONIC, "sum of the times from a loss, or the next record, to the next answer record") \
	TIME_ROWS(X, takeover_pauses, TAKEOVER_BUCKETS)                                                                \
	OWNERSHIP_COUNTERS(X)                                                                                          \
	X(drains_done, MONOTONIC, "drains at whose end the agent had no connection left")                              \
	X(drains_timed_out, MONOTONIC, "drains that ended while the agent had connections left")                       \
	X(drain_time_sum_ms, MONOTONIC, "sum of the times of drains")                                                  \
	TIME_ROWS(X, drain_time, DRAIN_BUCKETS)                                                                        \
	X(copies_current, MONOTONIC, "sealed copies that became current")                                              \
	X(client_bytes, MONOTONIC, "record bytes from clients")                                                        \
	X(server_bytes, MONOTONIC, "record bytes committed towards clients")                                           \
	X(client_change_cipher_spec, MONOTONIC, "records of type 0x14 from clients")                                   \
	X(client_alert, MONOTONIC, "records of type 0x15 from clients")                                                \
	X(client_handshake, MONOTONIC, "records of type 0x16 from clients")                                            \
	X(client_application_data, MONOTONIC, "records of type 0x17 from clients")                                     \
	X(server_change_cipher_spec, MONOTONIC, "records of type 0x14 towards clients")                                \
	X(server_alert, MONOTONIC, "records of type 0x15 towards clients")                                             \
	X(server_handshake, MONOTONIC, "records of type 0x16 towards clients")                                         \
	X(server_application_data, MONOTONIC, "records of type 0x17 towards clients")                                  \
	X(records_replayed, MONOTONIC, "client records sent again to a further owner")                                 \
	X(client_violations, MONOTONIC, "clients that broke the record layer")                                         \
	X(reattached, MONOTONIC, "connections that went on with their owner on a new link, also after a death")        \
	X(adopts_repeated, MONOTONIC, "adoptions asked for again, because the first SSL_ID may have been lost")        \
	X(reattach_failed, MONOTONIC, "connections whose owner did not go on with them on a new link")                 \
	X(frames_stale, MONOTONIC, "frames dropped: their stream is not the connection's current one")                 \
	X(links_up, GAUGE, "links to agent workers that are up")                                                       \
	X(links_lost, MONOTONIC, "links lost after they had been up")                                                  \
	X(link_violations, MONOTONIC, "links closed because the agent broke the link protocol")                        \
	X(openings_failed, MONOTONIC, "links that failed before they were up")                                         \
	X(log_lines_lost, MONOTONIC, "lines of the logs that could not be written: a disk, or a pipe, was full")       \
	X(control_no_room, MONOTONIC, "clients of the control API that showed no token and gave way, or had no room")  \
	X(control_no_header, MONOTONIC, "connections to control_address without a PROXY header, or not in time")

struct ragent_counters {
#define X(name, kind, help) counter name;
	RAGENT_COUNTERS(X)
#undef X
	counter ended[END_REASON_COUNT];
};

struct ownership_counters {
#define X(name, kind, help) counter name;
	OWNERSHIP_COUNTERS(X)
#undef X
};

/* Rows of the table and behind them one "ended_..." for each end reason. */
size_t ragent_counter_count(void);
const struct counter_row *ragent_counter_row(size_t index);

/* The rows of the table that are counted of each agent, too. */
size_t ownership_counter_count(void);
const struct counter_row *ownership_counter_row(size_t index);
