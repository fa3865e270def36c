/* smtp_pieces.h: waiting bytes, in pieces: bytes of the client, each piece with the record that it came in; or
 * replies for the client, one piece each.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct smtp_piece {
	struct smtp_piece *next;
	uint64_t record; /* of the client; 0 for a reply */
	uint32_t at;     /* the place of @data in that record; bytes */
	uint32_t len, used;
	uint8_t data[];
};

/* Embedded; zero is empty. */
struct smtp_pieces {
	struct smtp_piece *first, *last;
	size_t len;  /* unused bytes */
	size_t kept; /* memory for them, in bytes */
};

/* Copies the bytes. 0 or CSSL_E_NO_MEMORY. */
int smtp_pieces_add(struct smtp_pieces *p, uint64_t record, size_t at, const void *data, size_t len);
/* The first @len bytes are used. Pieces that are used completely are wiped and freed. */
void smtp_pieces_use(struct smtp_pieces *p, size_t len);
void smtp_pieces_clear(struct smtp_pieces *p);
