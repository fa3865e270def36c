/* kept_facts.h: the facts of a connection's session, kept in a tenth of their size. It is a part by itself, because all
 * who ask (the backend's header, copies, the access log) need them decoded, and only for a moment.
 */
#pragma once

#include "net/memory/slabs.h"
#include "proto/sess_obj.h"

/* Enough for the facts of most sessions: the size of a block. */
#define KEPT_FACTS_BLOCK 176u

struct kept_facts {
	uint8_t *encoded; /* a SESS_OBJ without live and resumption part; NULL: there are none yet */
	uint32_t len;
};

/* A certificate that would make them too long is taken out of @from. 0 or negative. */
int kept_facts_keep(struct kept_facts *k, struct slabs *blocks, struct sess_obj *from);
void kept_facts_drop(struct kept_facts *k, struct slabs *blocks);
/* 0 or negative; the caller destroys @out. */
int kept_facts_read(const struct kept_facts *k, struct sess_obj *out);
