/* carrier_home.h: how connections come to a worker of an agent: its links from RAgents, and its direct listeners. Used
 * from the worker's thread, except where a comment says otherwise.
 *
 * A link is this agent's end of one link from a worker of RAgent: frames in and out, its streams, and the carriers that
 * these are for connections. When it is lost, all its streams are lost: their connections stop sealing at once, reset
 * their backends and wipe their live parts (law 7), unless RAgent's next process may go on with them. RAgent then moves
 * them to other agents.
 *
 * A direct listener is an agent's own TLS listener, for use behind any layer-4 balancer (CSSL-SL without RAgent): TCP
 * connections of clients as carriers. Such a connection stays here until it ends; its session is shared like any other.
 */
#pragma once

#include "net/memory/slabs.h"
#include "net/report/log_pace.h"
#include "proto/link.pb-c.h"
#include "proto/opening.h"
#include "sslagent/connection/connection_home.h"
#include "sslagent/preamble/preamble.h"

struct admission;
struct direct_listener;
struct carrier_link;

/* The process, as a worker's links see it; @process is carrier_home's. */
struct carrier_process_ops {
	/* Does this agent accept no new connections? */
	bool (*is_leaving)(const void *process);
	/* The load of the whole process. */
	void (*load)(void *process, Cssl__LinkLoad *out);
	/* A request of RAgent on stream 0. Takes over @request. The answer goes to carrier_link_respond(), if the link
	 * with that number still exists. */
	void (*request)(void *process, uint64_t link_number, Cssl__LinkRequest *request);
};

struct carrier_home {
	/* Set before the first call. All of these outlive it. */
	struct connection_home *connections;
	struct admission *admission; /* for direct connections, shared by all workers */
	struct blocked *blocked;     /* for them likewise: a list of each RAgent of the file */
	const struct carrier_process_ops *ops;
	void *process;

	struct preamble_home preambles;
	struct slabs stream_blocks;  /* of the links' streams */
	struct carrier_link *links;  /* list */
	struct carrier_link *parked; /* list of those that are over; their streams wait for RAgent's next process */
	uint64_t links_begun;
	struct direct_listener *directs;               /* list */
	struct log_pace ended_lines[END_REASON_COUNT]; /* of their clients: each reason has a rate limit of its own */
};

/* On its thread, after connection_home_open(). 0 or CSSL_E_NO_MEMORY. */
int carrier_home_open(struct carrier_home *home);
/* Accept no new connections, and ask RAgents to give this agent none (LEAVING). */
void carrier_home_leave(struct carrier_home *home);
/* Close links, listeners and their connections. */
void carrier_home_close(struct carrier_home *home);
/* Call it after the thread ended. */
void carrier_home_release(struct carrier_home *home);

uint64_t carrier_home_add_link(struct carrier_home *home, struct carrier_link *l);       /* its number */
void carrier_home_remove_link(struct carrier_home *home, struct carrier_link *l);        /* also a parked one */
struct carrier_link *carrier_home_find_link(struct carrier_home *home, uint64_t number); /* NULL: it is gone */
uint32_t carrier_home_links(const struct carrier_home *home);                            /* how many there are */
uint64_t carrier_home_queued(const struct carrier_home *home); /* bytes that the network has not taken yet */

/* Does any RAgent keep this client of a direct listener out? */
bool carrier_home_blocks(const struct carrier_home *home, const struct client_address *client);

/* --- links --- */

/* A link whose opening is complete, on its way from the main loop to its worker. */
struct link_arrival {
	struct carrier_home *home;
	int fd;
	struct link_keys keys;
	struct link_hello peer;
	int memory;     /* carries the link's bytes; -1: the socket does */
	uint8_t *early; /* bytes that came after the opening */
	size_t early_len;
};

/* Begin to serve it, on its worker's thread. On failure the connection is closed and the failure logged. Takes over
 * @arrival. */
void carrier_link_begin(struct link_arrival *arrival);
void link_arrival_destroy(struct link_arrival *arrival); /* closes what it still has */

/* The name of its RAgent. */
const char *carrier_link_ragent(const struct carrier_link *l, uint64_t *boot_id);
/* Answer a REQUEST with a packed LinkResponse. The link may be gone when the answer is ready, so requests remember its
 * number (carrier_home_find_link()). */
void carrier_link_respond(struct carrier_link *l, const uint8_t *response, size_t len);

/* --- direct listeners --- */

/* NULL: the address cannot be bound (logged). The listener joins home->directs; clients wait in its queue. */
struct direct_listener *direct_listen(struct carrier_home *home, const struct conf_direct *conf);
void direct_accept(struct carrier_home *home); /* from now on */
/* Accept no new connections (a stop that waits for the others). */
void direct_stop_accepting(struct carrier_home *home);
/* Say goodbye to idle connections, or to all; or reset those of blocked networks. */
enum direct_whom { DIRECT_IDLE, DIRECT_ALL, DIRECT_BLOCKED };
void direct_finish(struct carrier_home *home, enum direct_whom whom);
/* The number of clients' TCP connections whose connection has ended. */
uint32_t direct_lingering(const struct carrier_home *home);
/* For log_pace_tell(), on any thread. */
void direct_tell_left_out(struct carrier_home *home);
/* Closes listeners and connections. */
void direct_close_all(struct carrier_home *home);
/* Frees the listeners' memory, when every handle is closed. */
void direct_release_all(struct carrier_home *home);
