/* carrier_home.h: shared by the carriers of one worker: its links, its direct listeners, and their calls to the
 * process. Used from the worker's thread.
 */
#ifndef CSSL_SSLAGENT_CARRIER_HOME_H
#define CSSL_SSLAGENT_CARRIER_HOME_H

#include "net/log_pace.h"
#include "net/slabs.h"
#include "proto/link.pb-c.h"
#include "sslagent/connection/connection_home.h"
#include "sslagent/preamble/preamble.h"

struct admission;
struct direct_listener;
struct link;

/* The process, as a worker's links see it; @process is carrier_home's. */
struct carrier_process_ops {
	/* 1: this agent accepts no new connections. */
	int (*is_leaving)(const void *process);
	/* The load of the whole process. */
	void (*load)(void *process, Cssl__LinkLoad *out);
	/* A request of RAgent on stream 0. Takes over @request. The answer goes to link_respond(), if the link with
	 * that number still exists. */
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
	struct slabs stream_blocks; /* of the links' streams */
	struct link *links;         /* list */
	struct link *parked;        /* list of those that are over; their streams wait for RAgent's next process */
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

uint64_t carrier_home_add_link(struct carrier_home *home, struct link *l);       /* its number */
void carrier_home_remove_link(struct carrier_home *home, struct link *l);        /* also a parked one */
struct link *carrier_home_find_link(struct carrier_home *home, uint64_t number); /* NULL: it is gone */
uint32_t carrier_home_links(const struct carrier_home *home);                    /* how many there are */
uint64_t carrier_home_queued(const struct carrier_home *home); /* bytes that the network has not taken yet */

/* Does any RAgent keep this client of a direct listener out? 1 or 0. */
int carrier_home_blocks(const struct carrier_home *home, const struct client_address *client);

#endif
