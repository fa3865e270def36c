/* connection_pack.c: writes a connection for another process. connection_unpack.c is the other side. */
#include "ragent/connection/revival/revival.h"

#include <string.h>

#include "ragent/connection/connection_life.h"
#include "ragent/connection/revival/connection_fields.h"
#include "ragent/link/stream_fields.h"

static size_t pack_agreed_len(const struct agreed *a)
{
	return 2 * sizeof(uint16_t) + strlen(agreed_alpn(a)) + strlen(agreed_server_name(a)) +
	       fields_len(agreed_rows, agreed_row_count);
}

static size_t pack_blob_len(const struct sealed_blob *b)
{
	return b ? b->len : 0;
}

size_t connection_packed_len(const struct connection *c)
{
	const struct busy_part *a = c->busy;
	size_t len = fields_len(connection_rows, connection_row_count) + fields_len(busy_rows, busy_row_count) +
		     fields_len(preamble_rows, preamble_row_count);

	if (c->now.state == CONNECTION_CLOSING)
		return 0;
	len += TAG_COUNT * (FIELD_HEADER_LEN + FIXED_LEN_MAX) + c->endpoints.unique_id_len;
	len += pack_blob_len(c->now.copies.current) + pack_blob_len(c->now.copies.pending);
	len += c->now.agreed ? pack_agreed_len(c->now.agreed) : 0;
	return a ? len + a->kept.end - a->kept.start + pack_blob_len(a->note.current) + stream_fields_len(&a->client)
		 : len;
}

static void pack_place(struct wire_writer *w, uint16_t tag, const struct place *p)
{
	if (!p->link)
		return;
	field_begin(w, tag, PLACE_LEN);
	wire_put_u16(w, (uint16_t)link_agent(p->link));
	wire_put_u16(w, (uint16_t)link_agent_worker(p->link));
	wire_put_u32(w, p->stream);
}

static void pack_copy(struct wire_writer *w, uint16_t tag, const struct sealed_blob *b)
{
	if (!b)
		return;
	field_begin(w, tag, COPY_HEADER_LEN + b->len);
	wire_put_u32(w, b->read_generation);
	wire_put_u32(w, b->write_generation);
	wire_put_bytes(w, b->data, b->len);
}

static void pack_text(struct wire_writer *w, const char *text)
{
	wire_put_u16(w, (uint16_t)strlen(text));
	wire_put_bytes(w, text, strlen(text));
}

static void pack_agreed(struct wire_writer *w, const struct agreed *a)
{
	if (!a)
		return;
	field_begin(w, TAG_AGREED, pack_agreed_len(a));
	pack_text(w, agreed_alpn(a));
	pack_text(w, agreed_server_name(a));
	fields_write(w, a, agreed_rows, agreed_row_count);
}

static void pack_busy(struct wire_writer *w, const struct busy_part *a)
{
	const struct kept *k = &a->kept;

	fields_write(w, a, busy_rows, busy_row_count);
	field_begin(w, TAG_KEPT, KEPT_HEADER_LEN + k->end - k->start);
	wire_put_u32(w, k->consumed - k->start);
	wire_put_u32(w, k->sent - k->start);
	if (k->data)
		wire_put_bytes(w, k->data + k->start, k->end - k->start);
	pack_place(w, TAG_FROZEN, &a->frozen);
	if (a->note.current)
		field_write(w, TAG_DOWNLOAD, a->note.current->data, a->note.current->len);
	if (a->preamble) {
		field_begin(w, TAG_PREAMBLE, fields_len(preamble_rows, preamble_row_count));
		fields_write(w, a->preamble, preamble_rows, preamble_row_count);
	}
	stream_fields_write(w, &a->client, (struct stream_tags){ TAG_INPUT, TAG_OUTPUT });
}

/* In the new process it gets an empty busy part. */
static void pack_compact(struct wire_writer *w, const struct connection *c)
{
	const struct busy_part nothing = { .kept = connection_kept(c) };

	fields_write(w, &nothing, busy_rows, busy_row_count);
}

void connection_pack(const struct connection *c, struct wire_writer *w)
{
	fields_write(w, c, connection_rows, connection_row_count);
	field_begin(w, TAG_LISTENER, sizeof(uint32_t));
	wire_put_u32(w, (uint32_t)(c->front - c->home->shared->fronts));
	pack_place(w, TAG_CURRENT, &c->now.current);
	if (c->endpoints.unique_id)
		field_write(w, TAG_UNIQUE_ID, c->endpoints.unique_id, c->endpoints.unique_id_len);
	pack_copy(w, TAG_COPY, c->now.copies.current);
	pack_copy(w, TAG_COPY_PENDING, c->now.copies.pending);
	pack_agreed(w, c->now.agreed);
	if (c->busy)
		pack_busy(w, c->busy);
	else
		pack_compact(w, c);
}
