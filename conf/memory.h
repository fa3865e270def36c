/* memory.h: the most memory that strangers can make a process take: limits that follow from the machine's memory where
 * the cluster file is silent, and what they come to, part by part.
 *
 * Of what the machine has, each process may give a sixteenth to clients' connections, a sixteenth to bytes that it
 * keeps for them and a thirty-second part to handshakes, so that some processes have room beside each other. What
 * agents hold of each other has limits of its own (store, broadcast).
 */
#ifndef CSSL_CONF_MEMORY_H
#define CSSL_CONF_MEMORY_H

#include "conf/conf.h"

/* What one of each takes at most, in bytes; the programs assert that theirs are not larger. */
#define MEMORY_OF_HANDSHAKE         (96u * 1024u) /* OpenSSL's objects, and a client's flight with certificates */
#define MEMORY_OF_RAGENT_CONNECTION (4u * 1024u)  /* with its sealed copies */
#define MEMORY_OF_AGENT_CONNECTION  (3u * 1024u)  /* with its backend's, and HTTP's state */
#define MEMORY_OF_CERTIFICATES      (9u * 1024u)  /* more, where clients have certificates */

/* Give every limit that is `derived` in @c its value: @memory bytes are what a process may use (0: not known, then
 * they are those of a machine of 2 GiB). */
void memory_derive(struct conf *c, uint64_t memory);

struct memory_part {
	const char *what;
	uint64_t count, each; /* bytes; @each UINT64_MAX: there is no bound */
};
#define MEMORY_PARTS_MAX 16u

/* The parts of a process; returns how many. */
size_t memory_of_ragent(
	const struct conf *c, const struct conf_ragent *r, struct memory_part out[static MEMORY_PARTS_MAX]);
size_t memory_of_agent(
	const struct conf *c, const struct conf_agent *a, struct memory_part out[static MEMORY_PARTS_MAX]);
/* UINT64_MAX: there is no bound. */
uint64_t memory_sum(const struct memory_part *parts, size_t count);

/* For --check. */
void memory_print(const struct conf *c, FILE *out);

/* The part of limits.kept that the bytes of records which are not whole may take, of one worker. */
uint64_t memory_for_partials(const struct conf_limits *l, unsigned workers);

#endif
