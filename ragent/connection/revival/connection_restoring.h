/* connection_restoring.h: shared by connection_restoring.c, which finds the connections to restore,
 * connection_restored.c, which makes one of them, and restored_bytes.c.
 */
#pragma once

#include "net/socket/tcp_counts.h"
#include "ragent/connection/connection_preamble.h"
#include "ragent/connection/connection_saved.h"

enum pass { PASS_OF_ACTIVE, PASS_OF_ALL };

/* One for each worker, from the start of its thread until all connections are restored. */
struct restoring {
	struct connection_home *home;
	struct slot_walk walk;
	enum pass pass;
	uint32_t forgotten;       /* so many chunks of the table were looked at, behind the last slot */
	struct turn_end next;     /* when the next connections are restored */
	uint32_t turn;            /* in which the last ones were */
	uint64_t stopped_ns;      /* behind the last ones; 0: there were none */
	const uint8_t *read_last; /* what the worker of the process before read last; NULL: it is overwritten */
};

/* Restores the connection of @s, or resets it. */
void connection_restore(const struct restoring *all, struct table_slot *s);

/* A connection on its way from the process before into this one. connection_restored.c checks it and makes it,
 * restored_bytes.c finds the bytes of both directions. */
struct restored {
	struct connection_home *home;
	struct table_slot *slot;
	enum slot_state was;
	const struct trail *trail;       /* NULL: it was compact */
	const struct trail_image *image; /* NULL: it was compact */
	struct connection c;             /* as it was, with pointers of this process */
	struct busy_part busy;
	struct preamble preamble;
	const uint8_t *read_last; /* what the worker of the process before read last; NULL: it is overwritten */
	uint8_t *input;           /* bytes of the client: kept records, and those behind them */
	size_t input_len;
	uint8_t *owed; /* bytes for the client that no agent holds */
	size_t owed_len;
};

/* The bytes of both directions; the kernel has @counts of them. What its client sent, from the first kept byte on, are
 * kept records and the input behind them. Bytes that no agent holds, and that its kernel has not taken, are its output.
 * 0; CSSL_E_RANGE: the values of the process before contradict each other; CSSL_E_NO_MEMORY. The caller frees @r->input
 * and
 * @r->owed. */
int restored_take_bytes(struct restored *r, const struct tcp_counts *counts);
