/* fuzz_frame.c: a link's bytes, frame after frame. A parsed frame must be written back to the same bytes. */
#include <string.h>

#include "proto/frame.h"
#include "tests/fuzz/must.h"

/* Writes at most the length of a fixed payload, from the values that were read. */
static size_t write_back(const struct frame *f, uint8_t out[static FRAME_ACCEPTED_MAX])
{
	struct frame_consumed consumed;
	struct frame_accepted accepted;
	struct frame_violation violation;

	switch (f->type) {
	case FRAME_CONSUMED:
		MUST(frame_consumed_read(f, &consumed) == 0);
		frame_consumed_write(out, &consumed);
		return FRAME_CONSUMED_LEN;
	case FRAME_ACCEPTED:
		if (frame_accepted_read(f, &accepted) < 0) {
			MUST(f->len != FRAME_ACCEPTED_LEN && f->len != FRAME_ACCEPTED_MAX);
			return 0;
		}
		return frame_accepted_write(out, &accepted);
	case FRAME_VIOLATION:
		MUST(frame_violation_read(f, &violation) == 0);
		frame_violation_write(out, &violation);
		return FRAME_VIOLATION_LEN;
	default: return 0;
	}
}

static void check_frame(const uint8_t *in, size_t len, const struct frame *f)
{
	uint8_t header[FRAME_HEADER_LEN], payload[FRAME_ACCEPTED_MAX];

	MUST(f->payload == in + FRAME_HEADER_LEN);
	MUST(f->len <= len - FRAME_HEADER_LEN);
	MUST(f->len <= FRAME_PAYLOAD_MAX);
	MUST(strcmp(frame_type_name(f->type), "?") != 0);
	frame_header_write(header, f->stream, f->type, f->flags, f->len);
	MUST(memcmp(header, in, FRAME_HEADER_LEN) == 0);
	MUST(memcmp(payload, f->payload, write_back(f, payload)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct frame f;
	while (frame_parse(in, len, &f) == 0) {
		check_frame(in, len, &f);
		in += FRAME_HEADER_LEN + f.len;
		len -= FRAME_HEADER_LEN + f.len;
	}
	return 0;
}
