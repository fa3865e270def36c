/* stream_fields.c: input as one piece; pieces of output are joined in the message. */
#include "ragent/link/stream_fields.h"

#include "proto/error.h"

size_t stream_fields_len(const struct stream *s)
{
	return FIELD_HEADER_LEN + stream_kept(s) + FIELD_HEADER_LEN + stream_unwritten_len(s);
}

void stream_fields_write(struct wire_writer *w, const struct stream *s, struct stream_tags tags)
{
	const size_t output_len = stream_unwritten_len(s);

	field_write(w, tags.input, stream_kept_data(s), stream_kept(s));
	field_begin(w, tags.output, output_len);
	uint8_t *output = wire_put_room(w, output_len);
	if (output)
		stream_unwritten_copy(s, output);
}

int stream_fields_take(struct stream_leftovers *left, struct stream_tags tags, const struct field_item *item)
{
	if (item->tag == tags.input) {
		left->input = item->value;
		left->input_len = item->len;
		return item->len <= WORKER_READ_BUFFER_LEN ? 0 : CSSL_E_TOO_LONG;
	}
	if (item->tag != tags.output)
		return FIELD_OTHER;
	left->output = item->value;
	left->output_len = item->len;
	return 0;
}
