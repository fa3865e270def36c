/* milter_wire.c: writes commands, reads replies. */
#include "smtpproxy/hooks/milter_wire.h"

#include <string.h>

#include "proto/error.h"
#include "smtp/reply_write.h"

#define LENGTH_BYTES 4u

uint8_t *milter_packet(struct wire_writer *w, enum milter_command command)
{
	uint8_t *begin = wire_put_room(w, LENGTH_BYTES);

	wire_put_u8(w, (uint8_t)command);
	return begin;
}

void milter_packet_end(struct wire_writer *w, uint8_t *begin)
{
	if (w->at)
		wire_store_u32(begin, (uint32_t)(w->at - begin) - LENGTH_BYTES);
}

void milter_put_text(struct wire_writer *w, struct smtp_span text)
{
	const char *nul = text.len ? memchr(text.at, '\0', text.len) : NULL;

	if (text.len)
		wire_put_bytes(w, text.at, nul ? (size_t)(nul - text.at) : text.len);
	wire_put_u8(w, 0);
}

int milter_take(const uint8_t *in, size_t len, size_t *taken, uint8_t *letter, struct wire_reader *rest)
{
	uint32_t packet;

	if (len < LENGTH_BYTES)
		return 0;
	packet = wire_load_u32(in);
	if (packet == 0 || packet > MILTER_PACKET_MAX)
		return CSSL_E_RANGE;
	if (len - LENGTH_BYTES < packet)
		return 0;
	*taken = LENGTH_BYTES + packet;
	*letter = in[LENGTH_BYTES];
	*rest = wire_reader(in + LENGTH_BYTES + 1, packet - 1);
	return 1;
}

/* Behind the three numbers, a milter may list the macros that it wants. It gets ours. It may also wish for more than
 * was offered, as rspamd always does: what it does is judged when it does it (Postfix). */
int milter_read_options(struct wire_reader r, struct milter_options *out)
{
	struct milter_options o;

	o.version = wire_u32(&r);
	o.actions = wire_u32(&r);
	o.flags = wire_u32(&r) & MILTER_FLAGS;
	if (!r.at)
		return CSSL_E_TRUNCATED;
	if (o.version < MILTER_LEAST || o.version > MILTER_VERSION)
		return CSSL_E_VERSION;
	*out = o;
	return 0;
}

int milter_read_text(struct wire_reader *r, struct smtp_span *out)
{
	const size_t left = wire_left(r);
	const uint8_t *at = wire_bytes(r, left);
	const uint8_t *nul = left ? memchr(at, '\0', left) : NULL;

	if (!nul)
		return CSSL_E_TRUNCATED;
	*out = (struct smtp_span){ (const char *)at, (size_t)(nul - at) };
	*r = wire_reader(nul + 1, left - out->len - 1);
	return 0;
}

/* The digits of a line's code, and behind it a space, a dash or nothing. */
static int read_code(struct smtp_span line, unsigned *code)
{
	uint64_t n;

	if (line.len < 3 || smtp_span_number((struct smtp_span){ line.at, 3 }, 599, &n) < 0 || n < 400)
		return CSSL_E_RANGE;
	if (line.len > 3 && line.at[3] != ' ' && line.at[3] != '-')
		return CSSL_E_RANGE;
	*code = n == 421 ? 451 : (unsigned)n;
	return 0;
}

int milter_write_reply(struct wire_writer *w, struct smtp_span text)
{
	char joined[SMTP_REPLY_LINE_MAX];
	size_t len = 0;
	unsigned code = 0, of_line;

	while (text.len) {
		struct smtp_span line = smtp_span_until(&text, '\n');

		if (line.len && line.at[line.len - 1] == '\r')
			line.len--;
		if (read_code(line, &of_line) < 0 || (code && of_line != code))
			return CSSL_E_RANGE;
		code = of_line;
		line.at += line.len > 3 ? 4 : 3;
		line.len -= line.len > 3 ? 4 : 3;
		/* The code has decided already. What does not fit is only text. */
		if (line.len + 1 > sizeof joined - len)
			break;
		if (len)
			joined[len++] = '\n';
		if (line.len)
			memcpy(joined + len, line.at, line.len);
		len += line.len;
	}
	if (!code)
		return CSSL_E_RANGE;
	smtp_reply_write(w, code, "", (struct smtp_span){ joined, len });
	return 0;
}
