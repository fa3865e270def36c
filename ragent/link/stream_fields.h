/* stream_fields.h: what a stream has read and not used, and not written yet, as two fields (proto/fields.h) of whatever
 * goes to another process with it. Each holder numbers them as it likes.
 */
#ifndef CSSL_RAGENT_STREAM_FIELDS_H
#define CSSL_RAGENT_STREAM_FIELDS_H

#include "net/stream.h"
#include "proto/fields.h"

struct stream_tags {
	uint16_t input, output;
};

size_t stream_fields_len(const struct stream *s);
void stream_fields_write(struct wire_writer *w, const struct stream *s, struct stream_tags tags);

/* @left points into the item. 0; FIELD_OTHER: it is neither of them; CSSL_E_TOO_LONG: more than a stream ever keeps. */
int stream_fields_take(struct stream_leftovers *left, struct stream_tags tags, const struct field_item *item);

#endif
