/* sess_obj_samples.h: one SESS_OBJ for each suite, with values that never change. The stored blobs contain them. */
#pragma once

#include "proto/sess_obj.h"

/* An object whose pointers go into the struct itself; it must not move. */
struct sess_obj_sample {
	struct sess_obj object;
	struct live_part live;
	uint8_t certificate[400];
	uint8_t session[531];
};

enum sample_parts {
	SAMPLE_FACTS = 0,
	SAMPLE_LIVE = 1 << 0,
	SAMPLE_RESUMPTION = 1 << 1,
	SAMPLE_BOTH = SAMPLE_LIVE | SAMPLE_RESUMPTION
};

void sess_obj_sample_fill(struct sess_obj_sample *s, const struct cipher_suite *suite, enum sample_parts parts);

/* Are all values equal, by content? */
int sess_obj_equal(const struct sess_obj *a, const struct sess_obj *b);
