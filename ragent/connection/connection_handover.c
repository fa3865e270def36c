/* connection_handover.c: the old process's side of a handover: it writes its connections for the new process. In the
 * end it either continues them or forgets them. connection_unpack.c is the other side.
 */
#include "ragent/connection/connection_handover.h"

#include <string.h>

#include "ragent/connection/connection_fields.h"
#include "ragent/link/stream_fields.h"

/* --- out --- */

static size_t blob_len(const struct sealed_blob *b)
{
	return b ? FIELD_HEADER_LEN + COPY_HEADER_LEN + b->len : 0;
}

static size_t agreed_len(const struct agreed *a)
{
	return fields_len(agreed_rows, agreed_row_count) + 2 * FIELD_HEADER_LEN + strlen(agreed_server_name(a)) +
	       strlen(agreed_alpn(a));
}

static size_t busy_len(const struct busy_part *a)
{
	size_t len = FIELD_HEADER_LEN + PLACE_LEN; /* frozen */

	len += FIELD_HEADER_LEN + a->kept.end - a->kept.start;
	len += 2 * (FIELD_HEADER_LEN + sizeof(uint32_t)); /* for TAG_KEPT_CONSUMED and TAG_KEPT_SENT */
	len += a->download ? FIELD_HEADER_LEN + a->download->len : 0;
	len += a->preamble ? FIELD_HEADER_LEN + fields_len(preamble_rows, preamble_row_count) : 0;
	return len + stream_fields_len(&a->client);
}

size_t connection_packed_len(const struct connection *c)
{
	size_t len = fields_len(connection_rows, connection_row_count) + fields_len(busy_rows, busy_row_count);

	len += FIELD_HEADER_LEN + sizeof(uint32_t); /* listener */
	len += FIELD_HEADER_LEN + PLACE_LEN;        /* current */
	len += FIELD_HEADER_LEN + c->endpoints.unique_id_len;
	len += blob_len(c->copies.current) + blob_len(c->copies.pending);
	len += c->agreed ? FIELD_HEADER_LEN + agreed_len(c->agreed) : 0;
	return c->busy ? len + busy_len(c->busy) : len;
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
	field_write(w, TAG_SERVER_NAME, agreed_server_name(a), strlen(agreed_server_name(a)));
	field_write(w, TAG_ALPN, agreed_alpn(a), strlen(agreed_alpn(a)));
}

static uint32_t front_index(const struct connection *c)
{
	return (uint32_t)(c->front - c->home->shared->fronts);
}

static void put_busy(struct wire_writer *w, const struct busy_part *a)
{
	const struct kept *k = &a->kept;

	fields_write(w, a, busy_rows, busy_row_count);
	field_write(w, TAG_KEPT, k->data ? k->data + k->start : NULL, k->end - k->start);
	put_u32(w, TAG_KEPT_CONSUMED, k->consumed - k->start);
	put_u32(w, TAG_KEPT_SENT, k->sent - k->start);
	put_place(w, TAG_FROZEN, &a->frozen);
	if (a->download)
		field_write(w, TAG_DOWNLOAD, a->download->data, a->download->len);
	if (a->preamble) {
		field_begin(w, TAG_PREAMBLE, fields_len(preamble_rows, preamble_row_count));
		fields_write(w, a->preamble, preamble_rows, preamble_row_count);
	}
	stream_fields_write(w, &a->client, (struct stream_tags){ TAG_INPUT, TAG_OUTPUT });
}

/* In the new process it gets an empty busy part. */
static void put_compact(struct wire_writer *w, const struct connection *c)
{
	const struct busy_part nothing = { .kept = connection_kept(c) };

	fields_write(w, &nothing, busy_rows, busy_row_count);
}

void connection_pack(const struct connection *c, struct wire_writer *w)
{
	fields_write(w, c, connection_rows, connection_row_count);
	put_u32(w, TAG_LISTENER, front_index(c));
	put_place(w, TAG_CURRENT, &c->current);
	if (c->endpoints.unique_id)
		field_write(w, TAG_UNIQUE_ID, c->endpoints.unique_id, c->endpoints.unique_id_len);
	put_copy(w, TAG_COPY, c->copies.current);
	put_copy(w, TAG_COPY_PENDING, c->copies.pending);
	put_agreed(w, c->agreed);
	if (c->busy)
		put_busy(w, c->busy);
	else
		put_compact(w, c);
}

int connection_fd(const struct connection *c)
{
	return c->busy ? stream_fd(&c->busy->client) : c->slot.fd;
}

int connection_can_be_packed(const struct connection *c)
{
	return c->state != CONNECTION_CLOSING;
}

/* --- here, or no more --- */

void connection_end_if_broken(struct connection *c)
{
	if (!c->busy || c->busy->client.state != STREAM_FAILED)
		return;
	if (c->state != CONNECTION_CLOSING)
		connection_end(c, END_CLIENT_RESET, END_RESET);
	/* a LINGERING one may end as soon as its socket reports an error */
	if (c->state == CONNECTION_LINGERING)
		connection_close_now(c);
}

static int waits_for_owner(const struct connection *c)
{
	const int amid_again = c->current.link && c->busy && c->busy->again.next;

	return c->state == CONNECTION_REATTACHING || amid_again;
}

int connection_home_waits_for_owners(const struct connection_home *home)
{
	const struct connection *c = home->connections;

	while (c && !waits_for_owner(c))
		c = c->next;
	return c != NULL;
}

void connection_stop_reattaching(struct connection *c)
{
	if (waits_for_owner(c))
		connection_reattach_failed(c);
}

void connection_forget_state(struct connection *c)
{
	connection_release_current(c);
	connection_forget_frozen(c);
	connection_drop_kept(c);
}

void connection_let_go(struct connection *c)
{
	if (c->state == CONNECTION_CLOSING)
		return;
	connection_forget_state(c);
	connection_forget_partial(c);
	connection_assign(c, NO_AGENT);
	connection_handshake_at(c, NO_AGENT);
	connection_close_now(c);
	connection_report_move(
		c, &(struct move_result){ .outcome = MOVE_UNAVAILABLE, .reason = "this process is being replaced" });
}
