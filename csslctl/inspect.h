/* inspect.h: a blob that an agent would import, described without its secrets, and whether one could. */
#ifndef CSSL_CSSLCTL_INSPECT_H
#define CSSL_CSSLCTL_INSPECT_H

#include <jansson.h>

#include "conf/conf.h"
#include "proto/sess_obj.h"

#define INSPECT_LEN_MAX (SESS_OBJ_LEN_MAX + 1024u) /* of a sealed copy with all around it */

struct key_ring;

/* All but @bytes may be absent (NULL, 0): then less can be told. */
struct inspection {
	const uint8_t *bytes;
	size_t len;
	const struct key_ring *agents_key;
	const struct connection_id *connection;
	const char *listener;
	const struct conf *conf;
	uint32_t kept_s; /* since it was made */
};

/* "importable": true, false, or null where that cannot be told, then "reason"; "kind", and of what could be read:
 * "seal", "facts", "resumption", "live". Where key material is, only its length. Owned by the caller. */
json_t *inspect(const struct inspection *in);

#endif
