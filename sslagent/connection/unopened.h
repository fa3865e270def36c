/* unopened.h: whole records of a client that wait to be opened. It is a part by itself, because a record that waits
 * costs the same for a handshake, an owner and an adopter, whoever opens it.
 */
#pragma once

#include "proto/tls_record.h"
#include "sslagent/connection/carrier.h"

/* Before each record, its header as the carrier parsed it. Others may read @len (0: none waits) and @cap. */
struct unopened {
	uint8_t *bytes;
	uint32_t len, cap, records;
};

/* Bytes of the records. */
static inline size_t unopened_len(const struct unopened *u)
{
	return u->len - u->records * sizeof(struct tls_record_header);
}

/* Whole records have to wait. 0, CSSL_E_FULL if they would be more than @most bytes, or CSSL_E_NO_MEMORY. */
int unopened_keep(struct unopened *u, const struct tls_record *records, size_t count, size_t most);
/* The record at offset @at, 0 for the first. Returns the offset of the next one. Valid until a record is kept or used.
 */
uint32_t unopened_record(const struct unopened *u, uint32_t at, struct tls_record *out);
/* The first @count records, up to offset @at, were used: they are wiped. Tells the carrier if none waits any more. */
void unopened_used(struct unopened *u, uint32_t at, uint32_t count, struct carrier *carrier);
/* None is needed any more. */
static inline void unopened_drop(struct unopened *u, struct carrier *carrier)
{
	unopened_used(u, u->len, u->records, carrier);
}
