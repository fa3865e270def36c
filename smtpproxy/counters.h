/* counters.h: the counters of smtpproxy, one table for the code, the control API and /metrics. */
#pragma once

#include <stdint.h>

/* X(name, help) */
#define SMTPPROXY_COUNTERS(X)                                                                                          \
	X(sessions, "senders' connections")                                                                            \
	X(sessions_refused, "senders' connections over a limit")                                                       \
	X(not_captured, "connections without a destination, or with one that is not allowed")                          \
	X(transactions, "transactions that got a reply to their end")                                                  \
	X(accepted, "transactions that the receiver accepted")                                                         \
	X(refused, "transactions that the receiver refused")                                                           \
	X(aborted, "transactions that ended before their content was complete")                                        \
	X(in_doubt, "transactions whose receiver was lost before it replied to their end")                             \
	X(decided_alone, "transactions that were decided after their sender was lost")                                 \
	X(turns_waited, "transactions that waited for a connection")                                                   \
	X(too_slow,                                                                                                    \
		"transactions that were ended because their sender was slow while others waited or memory was short")  \
	X(turns_repeated, "MAIL that a used connection did not take any more, so that it waited again")                \
	X(turns_expired, "transactions that waited too long and got 451")                                              \
	X(connections, "connections to receivers")                                                                     \
	X(connections_failed, "connections to receivers that did not come about")                                      \
	X(connections_refused, "connections that receivers refused by 421 or another 4xx")                             \
	X(names_refused, "names of senders (EHLO) that receivers refused")                                             \
	X(handshakes, "TLS handshakes with receivers")                                                                 \
	X(handshakes_failed, "TLS handshakes with receivers that failed")                                              \
	X(tls_given_up,                                                                                                \
		"handshakes that failed where TLS is not demanded, so that mail goes in clear for half an hour")       \
	X(sent_in_clear, "transactions that came with TLS and went on without")                                        \
	X(recipients_denied, "recipients of strangers that are none of the file's")                                    \
	X(recipients_unknown, "recipients of strangers that their mail servers refuse")                                \
	X(tlsa_failed, "searches for TLSA records without a result, so that a receiver got no mail")                   \
	X(smuggling, "messages with line ends that could hide another message")                                        \
	X(loops, "messages and connections that would have come back")                                                 \
	X(hooks_refused, "transactions and recipients that a hook refused for good")                                   \
	X(hooks_deferred, "transactions and recipients that a hook put off")                                           \
	X(hooks_discarded, "messages that a hook discarded")                                                           \
	X(hooks_changed, "messages whose header a hook changed")                                                       \
	X(hooks_failed, "times that a hook did not answer, or broke its protocol")                                     \
	X(reloads, "times that the configuration was read again")                                                      \
	X(log_lines_lost, "lines of the log that could not be written: a disk, or the pipe of a reader, was full")     \
	X(events_dropped, "event records that were not written")                                                       \
	X(events_left_out, "transactions without content that have no record, because there were too many in a row")   \
	X(bytes, "bytes of content passed on or stored")                                                               \
	X(no_room, "messages and commands that got 452 because too many bytes wait to be stored")                      \
	X(queue_full, "messages and commands that got 452 because the queue holds as much as it may")                  \
	X(backups_full, "messages that got 452 because the memory of a Redis server is full")                          \
	X(no_place, "attempts to deliver that found as many receivers as limits.destinations, so the mail waits")      \
	X(stores_expired, "messages that were not stored in time and got 451")                                         \
	X(delivered, "messages of the queue that all their recipients' receiver took")                                 \
	X(delivery_retries, "attempts to deliver a message of the queue that have to be repeated")                     \
	X(deliveries_split, "deliveries to a part of the recipients, because the receiver takes no more at a time")    \
	X(deliveries_asked, "deliveries whose end the receiver was asked for (XCSSLTX)")                               \
	X(failed, "messages of the queue with a recipient that failed for good")                                       \
	X(notices, "notices to senders that were stored")

struct smtpproxy_counters {
#define X(name, help) uint64_t name;
	SMTPPROXY_COUNTERS(X)
#undef X
};
