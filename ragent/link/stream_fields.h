/* stream_fields.h: the unused input and the unwritten output of a stream, as two fields (proto/fields.h) in its
 * holder's message to another process. Each holder chooses the tags.
 */
#pragma once

#include "net/stream/stream.h"
#include "proto/fields.h"

struct stream_tags {
	uint16_t input, output;
};

size_t stream_fields_len(const struct stream *s);
void stream_fields_write(struct wire_writer *w, const struct stream *s, struct stream_tags tags);

/* @left points into the item. 0; FIELD_OTHER: it is another field; CSSL_E_TOO_LONG: more than a stream ever keeps. */
int stream_fields_take(struct stream_leftovers *left, struct stream_tags tags, const struct field_item *item);
