/* frame.c: frame headers and the fixed payloads. One table has the rules for the header of each type, so that parsing
 * is a look-up and a few comparisons. */
#include "proto/frame.h"

#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"

#define DATA_FLAGS                                                                                                     \
	(FRAME_CHECKPOINT | FRAME_RESPONSE_BYTES | FRAME_LAST_OF_WRITE_GENERATION | FRAME_LAST_RECORD |                \
		FRAME_RECORDS_FOLLOW | FRAME_PLAINTEXT)
#define U8_LEN  1
#define U64_LEN 8

enum place { UNKNOWN_TYPE, ON_LINK, ON_STREAM };

struct rule {
	uint8_t place;
	uint8_t flags; /* flags that are allowed */
	uint16_t min_len, max_len;
};

static const struct rule rules[256] = {
	[FRAME_DATA] = { ON_STREAM, DATA_FLAGS, 1, FRAME_PAYLOAD_MAX },
	[FRAME_FIN] = { ON_STREAM, FRAME_AUTHENTICATED, 0, 0 },
	[FRAME_PING] = { ON_LINK, 0, U64_LEN, U64_LEN },
	[FRAME_PONG] = { ON_LINK, 0, U64_LEN, U64_LEN },
	[FRAME_OPEN] = { ON_STREAM, 0, 0, FRAME_PAYLOAD_MAX },
	[FRAME_SSL_ID] = { ON_STREAM, 0, 0, FRAME_PAYLOAD_MAX },
	[FRAME_ACCEPTED] = { ON_STREAM, 0, FRAME_ACCEPTED_LEN, FRAME_ACCEPTED_MAX },
	[FRAME_CLOSE] = { ON_STREAM, 0, U8_LEN, U8_LEN },
	[FRAME_DETACH] = { ON_STREAM, 0, 0, 0 },
	[FRAME_VIOLATION] = { ON_STREAM, 0, FRAME_VIOLATION_LEN, FRAME_VIOLATION_LEN },
	[FRAME_MOVE] = { ON_STREAM, 0, 0, FRAME_PAYLOAD_MAX },
	[FRAME_REQUEST] = { ON_LINK, 0, 0, FRAME_PAYLOAD_MAX },
	[FRAME_FINISH] = { ON_STREAM, 0, U8_LEN, U8_LEN },
	[FRAME_PREAMBLE] = { ON_STREAM, 0, 0, FRAME_PAYLOAD_MAX },
	[FRAME_PROOF] = { ON_LINK, 0, FRAME_PROOF_LEN, FRAME_PROOF_LEN },
	[FRAME_REATTACH] = { ON_STREAM, 0, FRAME_REATTACH_LEN, FRAME_REATTACH_LEN },
	[FRAME_KEPT] = { ON_STREAM, 0, 0, FRAME_PAYLOAD_MAX },
	[FRAME_HANDED_OFF] = { ON_STREAM, 0, 0, FRAME_PAYLOAD_MAX },
	[FRAME_ADOPTED] = { ON_STREAM, 0, 0, FRAME_PAYLOAD_MAX },
	[FRAME_REFUSED] = { ON_STREAM, 0, 0, FRAME_PAYLOAD_MAX },
	[FRAME_CONSUMED] = { ON_STREAM, FRAME_CHECKPOINT | FRAME_CLIENT_WAITS, FRAME_CONSUMED_LEN, FRAME_CONSUMED_LEN },
	[FRAME_COPY] = { ON_STREAM, 0, 0, FRAME_PAYLOAD_MAX },
	[FRAME_END] = { ON_STREAM, FRAME_ABORT, U8_LEN, U8_LEN },
	[FRAME_RESPONSE] = { ON_LINK, 0, 0, FRAME_PAYLOAD_MAX },
	[FRAME_LOAD] = { ON_LINK, 0, 0, FRAME_PAYLOAD_MAX },
	[FRAME_LEAVING] = { ON_LINK, 0, 0, 0 },
	[FRAME_DOWNLOAD] = { ON_STREAM, 0, 0, FRAME_PAYLOAD_MAX },
	[FRAME_TAKEN] = { ON_STREAM, 0, U64_LEN, U64_LEN },
	[FRAME_RELAYED] = { ON_STREAM, 0, 0, 0 },
	[FRAME_REATTACHED] = { ON_STREAM, 0, FRAME_REATTACHED_LEN, FRAME_REATTACHED_LEN },
};

static int frame_check(const struct frame *f)
{
	const struct rule *rule = &rules[f->type];
	if (rule->place == UNKNOWN_TYPE)
		return CSSL_E_TYPE;
	if (rule->place != (f->stream ? ON_STREAM : ON_LINK) || f->flags & ~rule->flags)
		return CSSL_E_RANGE;
	if (f->len < rule->min_len)
		return CSSL_E_TRUNCATED;
	return f->len > rule->max_len ? CSSL_E_TOO_LONG : 0;
}

int frame_parse(const uint8_t *in, size_t len, struct frame *out)
{
	if (len < FRAME_HEADER_LEN)
		return FRAME_INCOMPLETE;
	out->stream = wire_load_u32(in);
	out->type = in[4];
	out->flags = in[5];
	out->len = wire_load_u16(in + 6);
	out->payload = in + FRAME_HEADER_LEN;
	int r = frame_check(out);
	if (r < 0)
		return r;
	return len - FRAME_HEADER_LEN < out->len ? FRAME_INCOMPLETE : 0;
}

void frame_header_write(
	uint8_t out[static FRAME_HEADER_LEN], uint32_t stream, enum frame_type type, uint8_t flags, uint16_t len)
{
	wire_store_u32(out, stream);
	out[4] = (uint8_t)type;
	out[5] = flags;
	wire_store_u16(out + 6, len);
}

void frame_consumed_write(uint8_t out[static FRAME_CONSUMED_LEN], const struct frame_consumed *c)
{
	struct wire_writer w = wire_writer(out, FRAME_CONSUMED_LEN);
	wire_put_u64(&w, c->client_records);
	wire_put_u64(&w, c->read_sequence);
	wire_put_u32(&w, c->read_generation);
	wire_put_u32(&w, c->offset);
}

int frame_consumed_read(const struct frame *f, struct frame_consumed *out)
{
	struct wire_reader r = wire_reader(f->payload, f->len);
	out->client_records = wire_u64(&r);
	out->read_sequence = wire_u64(&r);
	out->read_generation = wire_u32(&r);
	out->offset = wire_u32(&r);
	return wire_reader_end(&r);
}

size_t frame_accepted_write(uint8_t out[static FRAME_ACCEPTED_MAX], const struct frame_accepted *a)
{
	struct wire_writer w = wire_writer(out, FRAME_ACCEPTED_MAX);
	wire_put_u64(&w, a->server_records);
	wire_put_u64(&w, a->drained);
	wire_put_u32(&w, a->write_generation);
	if (a->received)
		wire_put_u64(&w, a->received);
	return (size_t)wire_writer_len(&w);
}

int frame_accepted_read(const struct frame *f, struct frame_accepted *out)
{
	struct wire_reader r = wire_reader(f->payload, f->len);
	out->server_records = wire_u64(&r);
	out->drained = wire_u64(&r);
	out->write_generation = wire_u32(&r);
	out->received = f->len > FRAME_ACCEPTED_LEN ? wire_u64(&r) : 0;
	return wire_reader_end(&r);
}

void frame_violation_write(uint8_t out[static FRAME_VIOLATION_LEN], const struct frame_violation *v)
{
	struct wire_writer w = wire_writer(out, FRAME_VIOLATION_LEN);
	wire_put_u8(&w, v->type);
	wire_put_u16(&w, v->version);
	wire_put_u16(&w, v->length);
}

int frame_violation_read(const struct frame *f, struct frame_violation *out)
{
	struct wire_reader r = wire_reader(f->payload, f->len);
	out->type = wire_u8(&r);
	out->version = wire_u16(&r);
	out->length = wire_u16(&r);
	return wire_reader_end(&r);
}

void frame_reattach_write(uint8_t out[static FRAME_REATTACH_LEN], const struct frame_reattach *r)
{
	struct wire_writer w = wire_writer(out, FRAME_REATTACH_LEN);
	wire_put_bytes(&w, r->connection_id, sizeof r->connection_id);
	wire_put_u32(&w, r->stream);
	wire_put_u32(&w, r->epoch);
}

int frame_reattach_read(const struct frame *f, struct frame_reattach *out)
{
	struct wire_reader r = wire_reader(f->payload, f->len);
	const uint8_t *id = wire_bytes(&r, sizeof out->connection_id);
	if (id)
		memcpy(out->connection_id, id, sizeof out->connection_id);
	out->stream = wire_u32(&r);
	out->epoch = wire_u32(&r);
	return wire_reader_end(&r);
}

void frame_reattached_write(uint8_t out[static FRAME_REATTACHED_LEN], const struct frame_reattached *r)
{
	struct wire_writer w = wire_writer(out, FRAME_REATTACHED_LEN);
	wire_put_u64(&w, r->frame);
	wire_put_u64(&w, r->bytes);
	wire_put_u64(&w, r->client_records);
}

int frame_reattached_read(const struct frame *f, struct frame_reattached *out)
{
	struct wire_reader r = wire_reader(f->payload, f->len);
	out->frame = wire_u64(&r);
	out->bytes = wire_u64(&r);
	out->client_records = wire_u64(&r);
	return wire_reader_end(&r);
}

const char *frame_type_name(uint8_t type)
{
	switch (type) {
#define X(name, value, payload)                                                                                        \
	case value: return #name;
		FRAME_TYPES(X)
#undef X
	}
	return "?";
}
