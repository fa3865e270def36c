/* inspect.h: describes a SESS_OBJ or a sealed copy without its secrets, and tells whether an agent could import it. */
#pragma once

#include <jansson.h>

#include "conf/conf.h"
#include "proto/sess_obj.h"

#define INSPECT_LEN_MAX (SESS_OBJ_LEN_MAX + 1024u) /* the longest sealed copy */

struct key_ring;

/* All but @bytes may be NULL or 0; the description then has less. */
struct inspection {
	const uint8_t *bytes;
	size_t len;
	const struct key_ring *agents_key;
	const struct connection_id *connection;
	const char *listener;
	const struct conf *conf;
	uint32_t kept_s; /* since it was made */
};

/* Members: "importable" is true, false, or null (not known; then "reason" tells why); "kind"; and the parts that could
 * be read: "seal", "facts", "resumption", "live". Of key material only the length. The caller owns the result. */
json_t *inspect(const struct inspection *in);
