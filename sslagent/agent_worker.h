/* agent_worker.h: what one worker thread of an agent has: its TLS contexts, its record-layer pool, its links, its idle backend connections and its
 * table of connections. Used only from its own thread.
 */
#ifndef CSSL_SSLAGENT_AGENT_WORKER_H
#define CSSL_SSLAGENT_AGENT_WORKER_H

#include "conf/conf.h"
#include "net/worker.h"
#include "proto/sess_obj.h"

struct agent;
struct backend_pool;
struct cluster;
struct connection;
struct direct;
struct link;
struct live_pool;
struct tls_contexts;

#define CONNECTION_TABLE_MIN 64u

/* Connections by id; a connection is in it from OPEN or SSL_ID to its end. */
struct connection_table {
	struct connection **buckets;
	size_t bucket_count, count;
};

struct agent_worker {
	struct agent *agent;
	struct worker *worker;
	const struct conf *conf;
	const struct conf_agent *self;
	const struct key_ring *agents_key;
	struct cluster *cluster;
	struct tls_contexts *contexts; /* referenced; replaced on reload */
	struct live_pool *live_pool;
	struct backend_pool *backends;
	struct link *links;            /* list */
	struct direct *directs;        /* list */
	struct connection_table connections;
	unsigned handshakes;           /* under way */
	unsigned parked;
};

struct connection *connection_table_find(const struct connection_table *t, const struct connection_id *id);
int connection_table_add(struct connection_table *t, struct connection *c);
void connection_table_remove(struct connection_table *t, struct connection *c);

#endif
