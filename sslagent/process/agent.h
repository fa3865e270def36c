/* agent.h: an SSLAgent process: the main loop (new links, the cluster membership, signals) and its workers (links,
 * connections). It owns everything; there is one in a process. Call the functions on the main loop's thread unless
 * their comment says otherwise.
 */
#ifndef CSSL_SSLAGENT_AGENT_H
#define CSSL_SSLAGENT_AGENT_H

#include "conf/conf.h"
#include "net/worker.h"
#include "proto/link.pb-c.h"
#include "sslagent/process/agent_worker.h"

struct agent;
struct counter_row;
struct listings;

/* Times after SIGTERM: for connections to end where no RAgent drains them; extra time after RAgent's own limit; and
 * for a last goodbye to reach clients. */
#define AGENT_GRACE_MS      5000u
#define AGENT_LAST_WORDS_MS 1000u

/* Read keys, make TLS contexts, bind sockets, start workers. Takes over @conf. NULL: failed, and a message was
 * printed. */
struct agent *agent_create(struct conf *conf, const struct conf_agent *self);
/* Serve until SIGTERM or SIGINT, then until no connection is left or the time is over. A second signal ends it at
 * once. 0 when everything stopped cleanly. */
int agent_run(struct agent *a);
void agent_destroy(struct agent *a);

struct worker *agent_main(const struct agent *a);
/* Call @visit for each counter of the table, with the sum over all workers and the main loop. From any thread. */
void agent_counters(
	const struct agent *a, void (*visit)(void *ctx, const struct counter_row *row, uint64_t value), void *ctx);
struct cluster *agent_cluster(const struct agent *a);
struct listings *agent_listings(const struct agent *a);
/* Open the log again, and read certificates and keys again, from the same cluster file. 0, or negative for
 * error_text(): what could not be read again stays (logged). */
int agent_reload(struct agent *a);

/* @ragent keeps these networks (net/blocked.h) out, and no others. 0; CSSL_E_NOT_FOUND: no RAgent of that name;
 * CSSL_E_RANGE: nothing changed. */
int agent_block(struct agent *a, const char *ragent, uint64_t boot_id, const ProtobufCBinaryData *packed);

#endif
