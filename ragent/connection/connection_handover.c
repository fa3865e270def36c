/* connection_handover.c: the process that has a connection: what it says of it to the one that is to have it, and how
 * it goes on with it in the end, or lets it go. connection_unpack.c is the other side.
 */
#include "ragent/connection/connection_handover.h"

#include <string.h>

#include "ragent/connection/connection_fields.h"
#include "ragent/handover/stream_fields.h"

/* --- out --- */

static size_t blob_len(const struct sealed_blob *b)
{
	return b ? FIELD_HEADER_LEN + COPY_HEADER_LEN + b->len : 0;
}

static size_t agreed_len(const struct agreed *a)
{
	return fields_len(agreed_rows, agreed_row_count) + 2 * FIELD_HEADER_LEN + strlen(a->server_name) +
	       strlen(a->alpn);
}

size_t connection_packed_len(const struct connection *c)
{
	size_t len = fields_len(connection_rows, connection_row_count);

	len += 2 * (FIELD_HEADER_LEN + PLACE_LEN);        /* places */
	len += 3 * (FIELD_HEADER_LEN + sizeof(uint32_t)); /* listener, consumed, sent */
	len += FIELD_HEADER_LEN + c->endpoints.unique_id_len;
	len += FIELD_HEADER_LEN + c->kept.end - c->kept.start;
	len += c->download ? FIELD_HEADER_LEN + c->download->len : 0;
	len += blob_len(c->copies.current) + blob_len(c->copies.pending);
	len += c->agreed ? FIELD_HEADER_LEN + agreed_len(c->agreed) : 0;
	return len + stream_fields_len(&c->client);
}

static void put_u32(struct wire_writer *w, uint16_t tag, uint32_t v)
{
	field_begin(w, tag, sizeof v);
	wire_put_u32(w, v);
}

static void put_place(struct wire_writer *w, uint16_t tag, const struct place *p)
{
	if (!p->link)
		return;
	field_begin(w, tag, PLACE_LEN);
	wire_put_u16(w, (uint16_t)link_agent(p->link));
	wire_put_u16(w, (uint16_t)link_agent_worker(p->link));
	wire_put_u32(w, p->stream);
}

static void put_copy(struct wire_writer *w, uint16_t tag, const struct sealed_blob *b)
{
	if (!b)
		return;
	field_begin(w, tag, COPY_HEADER_LEN + b->len);
	wire_put_u32(w, b->read_generation);
	wire_put_u32(w, b->write_generation);
	wire_put_bytes(w, b->data, b->len);
}

static void put_agreed(struct wire_writer *w, const struct agreed *a)
{
	if (!a)
		return;
	field_begin(w, TAG_AGREED, agreed_len(a));
	fields_write(w, a, agreed_rows, agreed_row_count);
	field_write(w, TAG_SERVER_NAME, a->server_name, strlen(a->server_name));
	field_write(w, TAG_ALPN, a->alpn, strlen(a->alpn));
}

static uint32_t front_index(const struct connection *c)
{
	return (uint32_t)(c->front - c->home->shared->fronts);
}

void connection_pack(const struct connection *c, struct wire_writer *w)
{
	fields_write(w, c, connection_rows, connection_row_count);
	put_u32(w, TAG_LISTENER, front_index(c));
	put_place(w, TAG_CURRENT, &c->current);
	put_place(w, TAG_FROZEN, &c->frozen);
	if (c->endpoints.unique_id)
		field_write(w, TAG_UNIQUE_ID, c->endpoints.unique_id, c->endpoints.unique_id_len);
	field_write(w, TAG_KEPT, c->kept.data ? c->kept.data + c->kept.start : NULL, c->kept.end - c->kept.start);
	put_u32(w, TAG_KEPT_CONSUMED, c->kept.consumed - c->kept.start);
	put_u32(w, TAG_KEPT_SENT, c->kept.sent - c->kept.start);
	put_copy(w, TAG_COPY, c->copies.current);
	put_copy(w, TAG_COPY_PENDING, c->copies.pending);
	if (c->download)
		field_write(w, TAG_DOWNLOAD, c->download->data, c->download->len);
	put_agreed(w, c->agreed);
	stream_fields_write(w, &c->client, (struct stream_tags){ TAG_INPUT, TAG_OUTPUT });
}

int connection_fd(const struct connection *c)
{
	return stream_fd(&c->client);
}

int connection_can_be_packed(const struct connection *c)
{
	return c->state != CONNECTION_CLOSING;
}

/* --- here, or no more --- */

void connection_settle(struct connection *c)
{
	if (c->client.state == STREAM_FAILED && c->state != CONNECTION_CLOSING)
		connection_end(c, END_CLIENT_RESET, END_RESET);
	/* LINGERING ones end by that only when they are told */
	if (c->client.state == STREAM_FAILED && c->state == CONNECTION_LINGERING)
		connection_close_now(c);
}

void connection_forget_state(struct connection *c)
{
	connection_release_current(c);
	connection_forget_frozen(c);
	kept_clear(&c->kept, &c->home->blocks);
	copies_clear(&c->copies);
	download_drop(&c->download);
}

void connection_let_go(struct connection *c)
{
	if (c->state == CONNECTION_CLOSING)
		return;
	connection_forget_state(c);
	connection_forget_partial(c);
	connection_assign(c, NO_AGENT);
	connection_handshake_at(c, NO_AGENT);
	connection_to(c, CONNECTION_CLOSING);
	stream_close(&c->client);
	connection_report_move(
		c, &(struct move_result){ .outcome = MOVE_UNAVAILABLE, .reason = "this process is being replaced" });
}
