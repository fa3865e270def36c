/* h2_script.h: HTTP/2 conversations as text, for tests. A script is words with a blank between them; `>` is said by the
 * client and `<` by the backend:
 *
 *   P preface | S SETTINGS, S5 with SETTINGS_MAX_CONCURRENT_STREAMS 5, Sa its acknowledgement | H1 HEADERS of stream 1
 * | C1 CONTINUATION | D1 DATA | R1 RST_STREAM | U1:2 PUSH_PROMISE on stream 1 of stream 2, u1:2 with padding | p PING,
 * pa its acknowledgement | G7 GOAWAY, last stream 7 | W WINDOW_UPDATE | T priority | X unknown type
 *
 * Behind a number: e END_STREAM, c the header block goes on; of GOAWAY: x an error.
 *
 * A script that begins with = is of a conversation whose backend connection is gone.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "sslagent/service/h2/h2_frames.h"

#define H2_SCRIPT_FRAME_MAX 64u

static inline void h2_script_payload(struct wire_writer *w, char kind, uint32_t number, const char *rest)
{
	switch (kind) {
	case 'S':
		if (number == 0)
			return;
		wire_put_u16(w, 4); /* another setting comes first */
		wire_put_u32(w, 1 << 16);
		wire_put_u16(w, 3);
		wire_put_u32(w, number);
		return;
	case 'u': wire_put_u8(w, 1); __attribute__((fallthrough));
	case 'U':
		wire_put_u32(w, (uint32_t)strtoul(rest + 1, NULL, 10));
		if (kind == 'u')
			wire_put_u8(w, 0);
		return;
	case 'p': wire_put_bytes(w, "pingpong", 8); return;
	case 'G':
		wire_put_u32(w, number);
		wire_put_u32(w, *rest == 'x');
		return;
	case 'D':
	case 'H':
	case 'C': wire_put_bytes(w, "payload", 7); return;
	default: wire_put_u32(w, 0); return;
	}
}

/* One word without its direction. Returns its bytes in @out. */
static inline size_t h2_script_word(const char *word, uint8_t out[static H2_SCRIPT_FRAME_MAX])
{
	static const char kinds[] = "DHTRSUpGWCX";
	const char kind = word[0];
	char *rest;
	uint32_t number = (uint32_t)strtoul(word + 1, &rest, 10);
	size_t flags_at = strcspn(rest, " "), has_end = memchr(rest, 'e', flags_at) != NULL;
	size_t has_more = memchr(rest, 'c', flags_at) != NULL, is_ack = memchr(rest, 'a', flags_at) != NULL;
	uint8_t payload[H2_SCRIPT_FRAME_MAX];
	struct wire_writer p = wire_writer(payload, sizeof payload), w = wire_writer(out, H2_SCRIPT_FRAME_MAX);

	if (kind == 'P') {
		memcpy(out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
		return 24;
	}
	h2_script_payload(&p, kind, number, rest);
	struct h2_frame f = { .len = (uint32_t)wire_writer_len(&p),
		.type = kind == 'u' ? H2_PUSH_PROMISE : (uint8_t)(strchr(kinds, kind) - kinds),
		.flags = (uint8_t)(has_end | is_ack) };
	if (strchr("HCUu", kind) && !has_more)
		f.flags |= H2_END_HEADERS;
	if (kind == 'u')
		f.flags |= H2_PADDED;
	if (strchr("DHRUuC", kind))
		f.stream = number;
	h2_put_head(&w, &f);
	wire_put_bytes(&w, payload, f.len);
	return (size_t)wire_writer_len(&w);
}

/* The next word of *script, which moves behind it: its bytes, and who says it. 0: the script is over. */
static inline size_t h2_script_next(const char **script, char *direction, uint8_t out[static H2_SCRIPT_FRAME_MAX])
{
	const char *at = *script + strspn(*script, " ");

	if (!*at)
		return 0;
	*direction = *at;
	*script = at + strcspn(at, " ");
	return h2_script_word(at + 1, out);
}
