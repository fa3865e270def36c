/* agent.h: an SSLAgent process: the main loop (links being opened, the cluster membership, signals) and its workers
 * (links, connections). Owns everything; one per process. Functions are for the main loop's thread unless they say
 * otherwise.
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

/* After SIGTERM: for connections to end where no RAgent drains them; behind the time that RAgent gives them; and for a
 * last goodbye to reach clients. */
#define AGENT_GRACE_MS      5000u
#define AGENT_LAST_WORDS_MS 1000u

/* Keys read, TLS contexts made, sockets bound, workers running. NULL: a message was printed. @conf is owned from now
 * on. */
struct agent *agent_create(struct conf *conf, const struct conf_agent *self);
/* Serve until SIGTERM or SIGINT, and then until no connection is left, for a time; or until the second of them. 0 when
 * everything stopped cleanly. */
int agent_run(struct agent *a);
void agent_destroy(struct agent *a);

struct worker *agent_main(const struct agent *a);
/* Counters of all workers and of the main loop, summed; @visit for each row of the table. From any thread. */
void agent_counters(
	const struct agent *a, void (*visit)(void *ctx, const struct counter_row *row, uint64_t value), void *ctx);
struct cluster *agent_cluster(const struct agent *a);
struct listings *agent_listings(const struct agent *a);
/* Certificates and keys anew, from the same cluster file. 0, or negative: the old ones stay (logged). */
int agent_reload(struct agent *a);

#endif
