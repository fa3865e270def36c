/* restored.h: a connection on its way from the process before into this one; between connection_restored.c, which
 * checks it and makes it, and restored_bytes.c, which finds the bytes of both directions.
 */
#ifndef CSSL_RAGENT_RESTORED_H
#define CSSL_RAGENT_RESTORED_H

#include "ragent/connection/connection_internal.h"
#include "ragent/connection/connection_preamble.h"
#include "ragent/connection/trail.h"

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

/* What its client sent until byte number @read, from the first kept one on: kept records and the input behind them. 0;
 * CSSL_E_RANGE: the values of the process before contradict each other; CSSL_E_NO_MEMORY. The caller frees @r->input.
 */
int restored_take_input(struct restored *r, uint64_t read);
/* In place of that: nobody asks for its records again. */
void restored_keep_nothing(struct restored *r);
/* Those bytes for the client that no agent holds, and that its kernel has not taken (it has @written): they are its
 * output. Results as above. The caller frees @r->owed. */
int restored_take_owed(struct restored *r, uint64_t written);

#endif
