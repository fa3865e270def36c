/* memory.h: the most memory that strangers can make a process take. Limits that the cluster file does not set follow
 * from the machine's memory.
 *
 * Each process may use 1/16 of the memory for clients' connections, 1/16 for bytes that it keeps for them, and 1/32 for
 * handshakes, so that several processes have room beside each other. After a death of RAgent, its connections and the
 * bytes that it keeps are there up to three times for a moment. Sessions and connections of other agents have their own
 * limits (store, broadcast).
 */
#pragma once

#include "conf/conf.h"

/* The most bytes for one of each; the programs assert that theirs are not larger. */
#define MEMORY_OF_HANDSHAKE         (96u * 1024u) /* OpenSSL's objects, and a client's flight with certificates */
#define MEMORY_OF_RAGENT_CONNECTION (4u * 1024u)  /* with its sealed copies */
#define MEMORY_OF_AGENT_CONNECTION  (3u * 1024u)  /* with its backend's, and HTTP's state */
#define MEMORY_OF_PREAMBLE          (8u * 1024u)  /* a dialogue before STARTTLS, with lines that wait */
#define MEMORY_OF_SEEN_CONNECTION   64u           /* in an agent's memory of the cluster's connections */
#define MEMORY_OF_CERTIFICATES      (17u * 1024u) /* in addition, for clients with certificates: in two copies */
#define MEMORY_OF_WAITING_RECORDS   (8u * 1024u)  /* of a connection, in RAgent, while their answer has not begun */
#define MEMORY_RAGENT_SLAB_SIZES    88u           /* sizes of blocks that a worker of RAgent has slabs for */

/* Give each derived limit in @c its value, for a process that may use @memory bytes (0: not known, take 2 GiB). */
void memory_derive(struct conf *c, uint64_t memory);

struct memory_part {
	const char *what;
	uint64_t count, each; /* bytes; @each UINT64_MAX: there is no bound */
};
#define MEMORY_PARTS_MAX 16u

/* Fill @out with the parts of a process. Returns how many. */
size_t memory_of_ragent(
	const struct conf *c, const struct conf_ragent *r, struct memory_part out[static MEMORY_PARTS_MAX]);
size_t memory_of_agent(
	const struct conf *c, const struct conf_agent *a, struct memory_part out[static MEMORY_PARTS_MAX]);
/* UINT64_MAX: there is no bound. */
uint64_t memory_sum(const struct memory_part *parts, size_t count);

/* Addresses of the memory that outlives RAgent: for all connections of three processes, because two that follow a
 * death may die while they restore; for the bytes that they keep; and for the slabs that each worker has begun or
 * keeps, of each size. */
uint64_t memory_of_table(const struct conf *c, const struct conf_ragent *r);
/* The connections that this is for: the limit, or 2^20 if there is none. */
uint32_t memory_table_connections(const struct conf_ragent *r);

/* Descriptors that a process may need with so many connections; at its limits. 0: there is no bound. */
uint64_t memory_descriptors_of_ragent(const struct conf *c, const struct conf_ragent *r, uint64_t connections);
uint64_t memory_descriptors_of_agent(const struct conf *c, const struct conf_agent *a);

/* Bytes in which an agent remembers connections, open ones and ended ones. */
uint64_t memory_for_seen(const struct conf *c);

/* For --check. */
void memory_print(const struct conf *c, FILE *out);

/* The part of limits.kept for parts of records on one worker. */
uint64_t memory_for_partials(const struct conf_limits *l, unsigned workers);
