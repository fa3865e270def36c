/* kept_facts.c: the facts of a session as an encoded SESS_OBJ without keys: a tenth of the size of the struct, and
 * sealed copies are made from it. */
#include "sslagent/connection/kept_facts.h"

#include <stdlib.h>

#include "proto/error.h"
#include "proto/sealed_copy.h"

int kept_facts_keep(struct kept_facts *k, struct slabs *blocks, struct sess_obj *from)
{
	struct sess_obj facts = *from;

	facts.live = NULL;
	facts.session = NULL;
	facts.memory = NULL;
	ptrdiff_t len = sess_obj_encoded_len(&facts);
	if (len > (ptrdiff_t)SEALED_COPY_FACTS_MAX) { /* the session has it still */
		facts.certificate = from->certificate = NULL;
		facts.certificate_len = from->certificate_len = 0;
		len = sess_obj_encoded_len(&facts);
	}
	if (len < 0)
		return (int)len;
	k->encoded = len <= KEPT_FACTS_BLOCK ? slabs_take(blocks) : malloc((size_t)len);
	if (!k->encoded)
		return CSSL_E_NO_MEMORY;
	k->len = (uint32_t)len;
	len = sess_obj_encode(&facts, k->encoded, (size_t)len);
	return len < 0 ? (int)len : 0;
}

void kept_facts_drop(struct kept_facts *k, struct slabs *blocks)
{
	if (k->len <= KEPT_FACTS_BLOCK)
		slabs_give(blocks, k->encoded);
	else
		free(k->encoded);
	k->encoded = NULL;
}

int kept_facts_read(const struct kept_facts *k, struct sess_obj *out)
{
	return sess_obj_decode(k->encoded, k->len, out);
}
