/* counters.h: every counter of an agent, one table for code, API, metrics and manual. One array per thread, written by
 * it alone; readers sum. A thread says once which array is its own (counters_use), then counts without looking for it:
 * count(COUNT_SESSIONS_STORED). A thread that never said counts into an array nobody reads.
 */
#pragma once

#include "net/report/counters.h"

/* X(NAME, "name", kind, "help") */
#define SSLAGENT_COUNTERS(X)                                                                                           \
	/* connections and handshakes */                                                                               \
	X(CONNECTIONS_OPENED, "connections_opened", MONOTONIC,                                                         \
		"Connections begun here: opened, adopted or accepted directly")                                        \
	X(CONNECTIONS_ENDED, "connections_ended", MONOTONIC, "Connections that ended or moved away")                   \
	X(HANDSHAKES_FULL, "handshakes_full", MONOTONIC, "Full handshakes made")                                       \
	X(HANDSHAKES_RESUMED, "handshakes_resumed", MONOTONIC, "Handshakes that resumed a session")                    \
	X(RESUMED_BY_ID, "resumed_by_id", MONOTONIC, "Handshakes that resumed by TLS 1.2 session id")                  \
	X(RESUMED_BY_PSK, "resumed_by_psk", MONOTONIC, "Handshakes that resumed by TLS 1.3 PSK")                       \
	X(RESUMED_BY_TICKET, "resumed_by_ticket", MONOTONIC, "Handshakes that resumed by TLS 1.2 ticket")              \
	X(HANDSHAKES_TLS12, "handshakes_tls12", MONOTONIC, "Handshakes of TLS 1.2")                                    \
	X(HANDSHAKES_TLS13, "handshakes_tls13", MONOTONIC, "Handshakes of TLS 1.3")                                    \
	X(HANDSHAKES_FAILED, "handshakes_failed", MONOTONIC, "Handshakes that ended in an alert")                      \
	X(HANDSHAKES_REFUSED_VERSION, "handshakes_refused_version", MONOTONIC,                                         \
		"Handshakes refused: no protocol version in common")                                                   \
	X(HANDSHAKES_REFUSED_CIPHER, "handshakes_refused_cipher", MONOTONIC,                                           \
		"Handshakes refused: no cipher suite, group or signature algorithm in common")                         \
	X(HANDSHAKES_REFUSED_ALPN, "handshakes_refused_alpn", MONOTONIC,                                               \
		"Handshakes refused: no application protocol in common")                                               \
	X(HANDSHAKES_REFUSED_CERTIFICATE, "handshakes_refused_certificate", MONOTONIC,                                 \
		"Handshakes refused: the client's certificate was missing or not believed")                            \
	X(HANDSHAKES_REFUSED_ALERT, "handshakes_refused_alert", MONOTONIC,                                             \
		"Handshakes refused: the client sent an alert, mostly because it did not believe the server's "        \
		"certificate")                                                                                         \
	X(HANDSHAKES_REFUSED_MESSAGE, "handshakes_refused_message", MONOTONIC,                                         \
		"Handshakes refused: a message was malformed or out of order")                                         \
	X(HANDSHAKES_REFUSED_TIMEOUT, "handshakes_refused_timeout", MONOTONIC, "Handshakes refused: not over in time") \
	X(HANDSHAKES_REFUSED_CLIENT_GONE, "handshakes_refused_client_gone", MONOTONIC,                                 \
		"Handshakes refused: the client went away")                                                            \
	X(HANDSHAKES_REFUSED_HELLO, "handshakes_refused_hello", MONOTONIC,                                             \
		"Handshakes refused: the hello claimed more than 32 KiB")                                              \
	X(HANDSHAKES_REFUSED_OTHER, "handshakes_refused_other", MONOTONIC, "Handshakes refused: another reason")       \
	X(EARLY_DATA_SKIPPED, "early_data_skipped", MONOTONIC,                                                         \
		"Handshakes whose client had offered early data, which is never accepted")                             \
	X(HANDSHAKES_REFUSED_LIMIT, "handshakes_refused_limit", MONOTONIC,                                             \
		"Handshakes refused: too many were under way, in all or of their source")                              \
	X(HANDSHAKES_DISPLACED, "handshakes_displaced", MONOTONIC,                                                     \
		"Handshakes ended because another needed their place")                                                 \
	X(RESUMPTIONS_REFUSED_CERTIFICATE, "resumptions_refused_certificate", MONOTONIC,                               \
		"Sessions not resumed because the client certificate they rest on is over or revoked")                 \
	X(SESSIONS_WITHOUT_EMS, "sessions_without_ems", MONOTONIC,                                                     \
		"TLS 1.2 sessions that cannot be resumed: the client has no extended master secret")                   \
	X(PARKS_REFUSED, "parks_refused", MONOTONIC, "Handshakes that did not wait because too many did")              \
	X(PULLS_MISSED, "pulls_missed", MONOTONIC, "Handshakes that waited in vain and became full ones")              \
	X(HANDED_OFF, "handed_off", MONOTONIC, "Connections frozen and handed off")                                    \
	X(RESTED, "rested", MONOTONIC, "Connections frozen to rest on no agent")                                       \
	X(ADOPTED, "adopted", MONOTONIC, "Connections adopted")                                                        \
	X(ADOPTED_FROM_BROADCAST, "adopted_from_broadcast", MONOTONIC,                                                 \
		"Connections adopted from the live part heard by broadcast")                                           \
	X(ADOPTED_FROM_COPY, "adopted_from_copy", MONOTONIC, "Connections adopted from the sealed copy")               \
	X(ADOPTED_FROM_FROZEN, "adopted_from_frozen", MONOTONIC,                                                       \
		"Connections adopted from this agent's own frozen state")                                              \
	X(ADOPTED_IN_DOUBT, "adopted_in_doubt", MONOTONIC,                                                             \
		"Connections adopted with fresh keys or nonces although RAgent named no loss: nothing proved where "   \
		"the last owner stopped")                                                                              \
	X(ADOPTS_REFUSED, "adopts_refused", MONOTONIC, "Adoptions refused")                                            \
	X(ADOPTS_UNPROVEN, "adopts_unproven", MONOTONIC,                                                               \
		"Adoptions refused because RAgent did not show that it was given the connection")                      \
	X(ADOPTS_OTHER_LISTENER, "adopts_other_listener", MONOTONIC,                                                   \
		"Adoptions refused because RAgent named another listener than the connection's")                       \
	X(ADOPTS_STALE, "adopts_stale", MONOTONIC, "Adoptions refused because the state had a later owner")            \
	X(ADOPTS_OWNED_HERE, "adopts_owned_here", MONOTONIC,                                                           \
		"Adoptions refused because this agent itself owns the connection")                                     \
	X(OWNERS_SUPERSEDED, "owners_superseded", MONOTONIC,                                                           \
		"Connections given up because another agent said that it owns them")                                   \
	X(ADOPTS_FORGOTTEN, "adopts_forgotten", MONOTONIC,                                                             \
		"Adoptions refused because nothing is known of the connection any more")                               \
	X(MOVES_REFUSED, "moves_refused", MONOTONIC, "Moves refused because the backend half cannot follow")           \
	X(RECOVERED_REPLAYED, "recovered_replayed", MONOTONIC,                                                         \
		"Takeovers whose unanswered requests were given to a backend again")                                   \
	X(RECOVERED_502, "recovered_502", MONOTONIC, "Takeovers answered with 502: the request may have been done")    \
	X(RECOVERED_ALERT, "recovered_alert", MONOTONIC, "Takeovers ended with an alert: an answer was cut")           \
	X(DOWNLOADS_OFFERED, "downloads_offered", MONOTONIC, "Answers that could go on at another agent")              \
	X(DOWNLOADS_RESUMED, "downloads_resumed", MONOTONIC, "Takeovers that went on with an answer")                  \
	X(DOWNLOADS_REPEATED, "downloads_repeated", MONOTONIC,                                                         \
		"Takeovers that went on by a repetition of the whole answer, which began with the delivered bytes")    \
	X(DOWNLOADS_REFUSED, "downloads_refused", MONOTONIC,                                                           \
		"Answers that could have gone on, but the backend did not give the same any more")                     \
	X(DOWNLOADS_DIFFERED, "downloads_differed", MONOTONIC,                                                         \
		"Repeated answers that were not the one of which the client had got a part")                           \
	X(RECORDS_OPENED, "records_opened", MONOTONIC, "Client records opened as owner")                               \
	X(RECORDS_SEALED, "records_sealed", MONOTONIC, "Records sealed as owner")                                      \
	X(BYTES_TO_BACKEND, "bytes_to_backend", MONOTONIC, "Plaintext bytes given to backends")                        \
	X(BYTES_TO_CLIENT, "bytes_to_client", MONOTONIC, "Plaintext bytes sealed for clients")                         \
	X(KEY_UPDATES_SENT, "key_updates_sent", MONOTONIC, "KeyUpdates sealed")                                        \
	X(KEY_UPDATES_RECEIVED, "key_updates_received", MONOTONIC, "KeyUpdates received")                              \
	X(KEY_UPDATES_PACED, "key_updates_paced", MONOTONIC,                                                           \
		"KeyUpdates that came too often: the client's next records had to wait")                               \
	X(RECORD_VIOLATIONS, "record_violations", MONOTONIC,                                                           \
		"Connections ended because the client broke the record layer")                                         \
	X(REQUEST_HEADS_LATE, "request_heads_late", MONOTONIC,                                                         \
		"Connections ended because the head of a request did not come to its end in time")                     \
	X(TRACKS_LOST, "tracks_lost", MONOTONIC,                                                                       \
		"Connections ended because what passed broke the service's protocol (h2, smtp)")                       \
	X(KEPT_ENDED, "kept_ended", MONOTONIC, "Connections ended because too much was kept, and they kept most")      \
	X(BACKEND_CONNECTS, "backend_connects", MONOTONIC, "Connections made to backends")                             \
	X(PROXY_VALUES_LEFT_OUT, "proxy_values_left_out", MONOTONIC,                                                   \
		"Values left out of PROXY headers to backends, because of proxy_v2_max")                               \
	X(BACKEND_ASKED_AGAIN, "backend_asked_again", MONOTONIC,                                                       \
		"Requests asked once more on a new connection, because a kept one ended before their answer")          \
	X(BACKEND_REUSED, "backend_reused", MONOTONIC, "Conversations begun on a kept backend connection")             \
	X(BACKEND_NOT_QUIET, "backend_not_quiet", MONOTONIC,                                                           \
		"Kept backend connections dropped, not begun on, because they had ended or said something")            \
	X(BACKEND_NOT_SHARED, "backend_not_shared", MONOTONIC,                                                         \
		"Backend connections not kept for others, because a message on them may be read in two ways")          \
	X(BACKEND_FAILURES, "backend_failures", MONOTONIC, "Conversations that a backend cut or never began")          \
	X(DIRECT_REFUSED, "direct_refused", MONOTONIC, "Direct connections refused: limit, PROXY header, not TLS")     \
	X(DIRECT_PLAIN_HTTP, "direct_plain_http", MONOTONIC, "Direct connections that were HTTP without TLS")          \
	X(DIRECT_NOT_TLS, "direct_not_tls", MONOTONIC, "Direct connections that were neither TLS nor HTTP")            \
	X(PREAMBLES, "preambles", MONOTONIC, "Service smtp: dialogues in clear begun")                                 \
	X(STARTTLS_ANSWERED, "starttls_answered", MONOTONIC, "Service smtp: dialogues in clear that came to STARTTLS") \
	X(STARTTLS_INJECTIONS, "starttls_injections", MONOTONIC,                                                       \
		"Direct clients reset: bytes in clear came where TLS had to begin")                                    \
	X(PREAMBLES_ENDED, "preambles_ended", MONOTONIC,                                                               \
		"Service smtp: dialogues in clear that ended by QUIT or a refusal")                                    \
	X(MAIL_IN_CLEAR, "mail_in_clear", MONOTONIC,                                                                   \
		"Service smtp: dialogues in clear in which mail began without STARTTLS")                               \
	X(MAIL_GREETINGS_REFUSED, "mail_greetings_refused", MONOTONIC,                                                 \
		"Service smtp: mails in clear whose EHLO or HELO the mail server refused")                             \
	X(MAIL_CLIENTS_REFUSED, "mail_clients_refused", MONOTONIC,                                                     \
		"Service smtp: clients that the mail server refused in place of its banner")                           \
	X(PREAMBLES_REFUSED, "preambles_refused", MONOTONIC,                                                           \
		"Direct listeners: dialogues in clear that were refused or ended, because there were too many")        \
	X(MAIL_REPEATED, "mail_repeated", MONOTONIC,                                                                   \
		"Service smtp: takeovers that said again to a server what was cut before the end of its mail")         \
	X(MAIL_ASKED, "mail_asked", MONOTONIC, "Questions to a server what became of a transaction (XCSSLTX)")         \
	X(MAIL_DECIDED, "mail_decided", MONOTONIC,                                                                     \
		"Questions about a transaction answered with the reply to the mail")                                   \
	X(MAIL_NEVER, "mail_never", MONOTONIC, "Questions about a transaction answered: it was never taken")           \
	X(MAIL_UNKNOWN, "mail_unknown", MONOTONIC, "Questions about a transaction answered: unknown")                  \
	X(MAIL_421_LEAVING, "mail_421_leaving", MONOTONIC, "421 said behind TLS: the agent had to go")                 \
	X(MAIL_421_AGENT_LOST, "mail_421_agent_lost", MONOTONIC,                                                       \
		"421 said behind TLS: an agent was lost and its session could not go on")                              \
	X(MAIL_421_BACKEND_UNREACHABLE, "mail_421_backend_unreachable", MONOTONIC,                                     \
		"421 said behind TLS: the server was out of reach, or did not begin")                                  \
	X(MAIL_421_BACKEND_LOST, "mail_421_backend_lost", MONOTONIC, "421 said behind TLS: the server ended")          \
	X(MAIL_421_BACKEND_BROKEN, "mail_421_backend_broken", MONOTONIC,                                               \
		"421 said behind TLS: the server broke the protocol")                                                  \
	X(MAIL_421_BACKEND_CHANGED, "mail_421_backend_changed", MONOTONIC,                                             \
		"421 said behind TLS: another server offered something else, or replied differently")                  \
	X(MAIL_421_OTHER, "mail_421_other", MONOTONIC,                                                                 \
		"421, 500 or 550 said behind TLS for another reason, and the end")                                     \
	X(LINKS_LOST, "links_lost", MONOTONIC, "Links to RAgent workers lost")                                         \
	X(LINK_VIOLATIONS, "link_violations", MONOTONIC,                                                               \
		"Links to RAgent workers lost because RAgent broke the link protocol")                                 \
	X(STREAMS_PARKED, "streams_parked", MONOTONIC,                                                                 \
		"Streams that waited for the next link of RAgent or of its next process")                              \
	X(STREAMS_REATTACHED, "streams_reattached", MONOTONIC, "Parked streams that went on on the next link")         \
	X(STREAMS_NOT_REATTACHED, "streams_not_reattached", MONOTONIC, "Parked streams that waited in vain")           \
	X(STREAMS_ADOPTED_ANEW, "streams_adopted_anew", MONOTONIC,                                                     \
		"Parked streams that ended because RAgent asked this agent to adopt their connection")                 \
	X(REATTACHES_REFUSED, "reattaches_refused", MONOTONIC,                                                         \
		"Streams that a RAgent asked for in vain: unknown, of another RAgent, or of another epoch")            \
	X(HELD_GIVEN_UP, "held_given_up", MONOTONIC,                                                                   \
		"Streams that cannot outlive their link any more, because too much was kept")                          \
	X(FRAMES_STALE, "frames_stale", MONOTONIC, "Frames dropped: their stream has ended, or never was")             \
	X(LINKS_REFUSED, "links_refused", MONOTONIC, "Links refused: key, role, protection, version, time-out")        \
	X(LINK_OPENINGS_DISPLACED, "link_openings_displaced", MONOTONIC,                                               \
		"Openings of links that said nothing and gave way to newer ones, or found no room")                    \
	/* session store */                                                                                            \
	X(SESSIONS_STORED, "sessions_stored", MONOTONIC, "Sessions taken into the store, made here or heard of")       \
	X(SESSIONS_KNOWN, "sessions_known", MONOTONIC, "Sessions offered to the store that it had")                    \
	X(SESSIONS_EVICTED, "sessions_evicted", MONOTONIC, "Sessions that made room for others")                       \
	X(SESSIONS_EVICTED_SOURCE, "sessions_evicted_source", MONOTONIC,                                               \
		"Sessions that made room because their source had its share")                                          \
	X(SESSIONS_REPLACED, "sessions_replaced", MONOTONIC,                                                           \
		"Sessions told to agents that hold them in the place of one that left")                                \
	X(SESSIONS_DISPLACED, "sessions_displaced", MONOTONIC, "Sessions dropped because other agents hold them now")  \
	X(SESSIONS_EXPIRED, "sessions_expired", MONOTONIC, "Sessions dropped at the end of their lifetime")            \
	X(SESSIONS_REVOKED, "sessions_revoked", MONOTONIC, "Sessions removed by a revocation")                         \
	X(SESSIONS_REFUSED, "sessions_refused", MONOTONIC, "Sessions not stored: too large, malformed, no room")       \
	X(SESSIONS_REFUSED_REVOKED, "sessions_refused_revoked", MONOTONIC,                                             \
		"Sessions that came after their revocation and were refused")                                          \
	X(SESSIONS_FOUND, "sessions_found", MONOTONIC, "Look-ups that found the session here")                         \
	X(SESSIONS_ABSENT, "sessions_absent", MONOTONIC, "Look-ups that ended in a full handshake at once")            \
	X(TOMBSTONES_COLLAPSED, "tombstones_collapsed", MONOTONIC,                                                     \
		"Times the revocations became one of everything because there were too many")                          \
	/* live parts */                                                                                               \
	X(LIVE_STORED, "live_stored", MONOTONIC, "Live parts of other agents' connections taken in")                   \
	X(LIVE_REFUSED, "live_refused", MONOTONIC, "Live parts refused: older than what is known, malformed, no room") \
	X(LIVE_EVICTED, "live_evicted", MONOTONIC, "Live parts that made room for others")                             \
	X(LIVE_DROPPED, "live_dropped", MONOTONIC, "Live parts dropped: connection gone, key changed, expired, lost")  \
	X(EPOCHS_REFUSED, "epochs_refused", MONOTONIC, "Ownerships refused because their epoch was seen before")       \
	X(SEQUENCES_REFUSED, "sequences_refused", MONOTONIC,                                                           \
		"Ownerships refused because they would have sealed again what was sealed before")                      \
	X(CONNECTIONS_FORGOTTEN_EARLY, "connections_forgotten_early", MONOTONIC,                                       \
		"Connections forgotten before their time because there were too many")                                 \
	/* broadcast, sending */                                                                                       \
	X(OBJECTS_SENT, "objects_sent", MONOTONIC, "Numbered objects given to the broadcast")                          \
	X(OBJECTS_TOO_LARGE, "objects_too_large", MONOTONIC,                                                           \
		"Numbered objects that were only announced, because they do not fit a datagram")                       \
	X(OBJECTS_REPEATED, "objects_repeated", MONOTONIC, "Numbered objects sent again to one peer")                  \
	X(DATAGRAMS_SEALED, "datagrams_sealed", MONOTONIC, "Datagrams sealed")                                         \
	X(DATAGRAMS_SENT, "datagrams_sent", MONOTONIC, "Datagrams given to the network, once per peer")                \
	X(DATAGRAMS_DROPPED, "datagrams_dropped", MONOTONIC,                                                           \
		"Datagrams that the kernel did not take or delivered cut off; the broadcast repairs it")               \
	X(DATAGRAM_BYTES_SENT, "datagram_bytes_sent", MONOTONIC,                                                       \
		"Bytes of datagrams sent, without UDP and IP headers")                                                 \
	/* broadcast, receiving */                                                                                     \
	X(DATAGRAMS_RECEIVED, "datagrams_received", MONOTONIC, "Datagrams received and believed")                      \
	X(DATAGRAMS_MALFORMED, "datagrams_malformed", MONOTONIC, "Datagrams dropped: no datagram of ours")             \
	X(DATAGRAMS_KEY_UNKNOWN, "datagrams_key_unknown", MONOTONIC, "Datagrams dropped: sealed under an unknown key") \
	X(DATAGRAMS_OLD_BOOT, "datagrams_old_boot", MONOTONIC,                                                         \
		"Datagrams dropped: from an earlier run of their sender")                                              \
	X(DATAGRAMS_FORGED, "datagrams_forged", MONOTONIC, "Datagrams dropped: authentication failed")                 \
	X(DATAGRAMS_REPLAYED, "datagrams_replayed", MONOTONIC, "Datagrams dropped: seen before or too old to tell")    \
	X(MESSAGES_UNPROVEN, "messages_unproven", MONOTONIC, "Messages dropped: their sender has proven nothing yet")  \
	X(MESSAGES_STALE, "messages_stale", MONOTONIC, "Messages dropped: held back on their way")                     \
	X(MESSAGES_BAD, "messages_bad", MONOTONIC, "Authentic messages that are of no known kind or malformed")        \
	X(OBJECTS_RECEIVED, "objects_received", MONOTONIC, "Numbered objects received for the first time")             \
	X(OBJECTS_DUPLICATE, "objects_duplicate", MONOTONIC, "Numbered objects received again")                        \
	X(OBJECTS_MISSED, "objects_missed", MONOTONIC, "Numbers found missing")                                        \
	X(OBJECTS_FORGOTTEN, "objects_forgotten", MONOTONIC, "Missing numbers their sender could not repeat")          \
	X(PROBES_SENT, "probes_sent", MONOTONIC, "Challenges sent")                                                    \
	X(PROOFS_TAKEN, "proofs_taken", MONOTONIC, "Challenges answered in time")                                      \
	/* pulls */                                                                                                    \
	X(PULLS, "pulls", MONOTONIC, "Handshakes that waited for a session from an agent that has it")                 \
	X(PULLS_FOUND, "pulls_found", MONOTONIC, "Pulls that brought the session")                                     \
	X(PULLS_ABSENT, "pulls_absent", MONOTONIC, "Pulls that found no agent with the session")                       \
	X(PULLS_TIMED_OUT, "pulls_timed_out", MONOTONIC, "Pulls without an answer in time")                            \
	X(PULLS_ASKED, "pulls_asked", MONOTONIC, "Questions sent for pulls")                                           \
	X(PULLS_ANSWERED, "pulls_answered", MONOTONIC, "Questions of other agents answered")                           \
	/* agent-agent links */                                                                                        \
	X(PEERS_UP, "peers_up", GAUGE, "Agents with a link")                                                           \
	X(PEERS_UNHEARD, "peers_unheard", GAUGE, "Agents with a link of which no datagram comes")                      \
	X(PEER_LINKS_OPENED, "peer_links_opened", MONOTONIC, "Agent-agent links opened")                               \
	X(PEER_LINKS_LOST, "peer_links_lost", MONOTONIC, "Agent-agent links lost")                                     \
	X(PEER_LINKS_REFUSED, "peer_links_refused", MONOTONIC, "Agent-agent links refused: key, name, version")        \
	X(PEER_OPENINGS_DISPLACED, "peer_openings_displaced", MONOTONIC,                                               \
		"Openings of agent-agent links that said nothing and gave way to newer ones, or found no room")        \
	X(SNAPSHOTS_TAKEN, "snapshots_taken", MONOTONIC, "Snapshots taken from peers")                                 \
	X(SNAPSHOTS_GIVEN, "snapshots_given", MONOTONIC, "Snapshots given to peers")                                   \
	X(SENDING_KEYS_ROLLED, "sending_keys_rolled", MONOTONIC, "Changes of this agent's sending key")                \
	X(TICKET_KEYS_MADE, "ticket_keys_made", MONOTONIC, "Ticket keys made here")                                    \
	X(BACKENDS_PASSED, "backends_passed", MONOTONIC, "Backend sockets passed to other agents")                     \
	X(BACKENDS_NOT_PASSED, "backends_not_passed", MONOTONIC, "Backend sockets that could not be passed")           \
	X(BACKENDS_TAKEN, "backends_taken", MONOTONIC, "Backend sockets received from other agents")                   \
	X(BACKENDS_UNCLAIMED, "backends_unclaimed", MONOTONIC,                                                         \
		"Backend sockets from other agents that nobody claimed in time")                                       \
	/* gauges, set now and then by the thread that knows */                                                        \
	X(LINK_QUEUED_BYTES, "link_queued_bytes", GAUGE, "Bytes that links to RAgent workers have not taken yet")      \
	X(PEER_LINK_QUEUED_BYTES, "peer_link_queued_bytes", GAUGE,                                                     \
		"Bytes that agent-agent links have not taken yet: snapshots, mostly")                                  \
	X(HANDSHAKES_UNDER_WAY, "handshakes_under_way", GAUGE, "Handshakes that have begun and not ended")             \
	X(KEPT_BYTES, "kept_bytes", GAUGE, "Bytes kept for connections: what waits, either way, or may be sent again") \
	X(CONNECTIONS_SEEN, "connections_seen", GAUGE, "Connections of the cluster that are remembered")               \
	X(SESSIONS, "sessions", GAUGE, "Sessions in the store")                                                        \
	X(SESSION_BYTES, "session_bytes", GAUGE, "Bytes of the store in use")                                          \
	X(RESIDENT_BYTES, "resident_bytes", GAUGE, "Memory of the process in RAM")                                     \
	X(LOG_LINES_LOST, "log_lines_lost", MONOTONIC,                                                                 \
		"Lines of the logs that could not be written: a disk, or the pipe of a reader, was full")              \
	X(SECRETS_UNLOCKED_BYTES, "secrets_unlocked_bytes", GAUGE,                                                     \
		"Memory for keys and secrets that is not locked, because of RLIMIT_MEMLOCK, and may be swapped out")   \
	X(OWN_PROVIDER, "own_provider", GAUGE, "1: handshakes use HMAC and key schedules of the agent; 0: OpenSSL's")  \
	X(LIVE_PARTS, "live_parts", GAUGE, "Live parts of other agents' connections")                                  \
	X(LIVE_BYTES, "live_bytes", GAUGE, "Bytes of such live parts")                                                 \
	X(TOMBSTONES, "tombstones", GAUGE, "Revocations remembered")

enum agent_counter {
#define X(name, text, kind, help) COUNT_##name,
	SSLAGENT_COUNTERS(X)
#undef X
		AGENT_COUNTER_COUNT
};

struct counter_array {
	counter at[AGENT_COUNTER_COUNT];
} __attribute__((aligned(64)));

/* The arrays of a process, one per thread. */
struct agent_counters;
struct agent_counters *agent_counters_create(unsigned threads);
void agent_counters_destroy(struct agent_counters *c); /* when its threads count no more */
struct counter_array *counters_of(struct agent_counters *c, unsigned thread);
uint64_t agent_counters_sum(struct agent_counters *c, enum agent_counter which);
const struct counter_row *agent_counter_rows(void); /* AGENT_COUNTER_COUNT of them */

/* The calling thread's array from now on; NULL: the one nobody reads. */
void counters_use(struct counter_array *a);

extern _Thread_local struct counter_array *counters_here;

static inline void count_by(enum agent_counter which, uint64_t n)
{
	counter_add(&counters_here->at[which], n);
}
static inline void count(enum agent_counter which)
{
	count_by(which, 1);
}
static inline void count_gauge(enum agent_counter which, uint64_t value)
{
	counter_set(&counters_here->at[which], value);
}
