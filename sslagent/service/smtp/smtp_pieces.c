/* smtp_pieces.c: a list. */
#include "sslagent/service/smtp/smtp_pieces.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "proto/error.h"

int smtp_pieces_add(struct smtp_pieces *p, uint64_t record, size_t at, const void *data, size_t len)
{
	struct smtp_piece *piece = malloc(sizeof *piece + len);

	if (!piece)
		return CSSL_E_NO_MEMORY;
	*piece = (struct smtp_piece){ .record = record, .at = (uint32_t)at, .len = (uint32_t)len };
	memcpy(piece->data, data, len);
	if (p->last)
		p->last->next = piece;
	else
		p->first = piece;
	p->last = piece;
	p->len += len;
	p->kept += sizeof *piece + len;
	return 0;
}

static void drop_first(struct smtp_pieces *p)
{
	struct smtp_piece *piece = p->first;

	p->first = piece->next;
	if (!p->first)
		p->last = NULL;
	p->kept -= sizeof *piece + piece->len;
	sodium_memzero(piece->data, piece->len);
	free(piece);
}

void smtp_pieces_use(struct smtp_pieces *p, size_t len)
{
	while (len) {
		struct smtp_piece *piece = p->first;
		const size_t left = piece->len - piece->used, used = len < left ? len : left;
		piece->used += (uint32_t)used;
		p->len -= used;
		len -= used;
		if (piece->used == piece->len)
			drop_first(p);
	}
}

void smtp_pieces_clear(struct smtp_pieces *p)
{
	smtp_pieces_use(p, p->len);
}
