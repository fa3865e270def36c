/* position_claim.h: what an owner claims of a connection's position, from its KEPT or HANDED_OFF. Pure. */
#ifndef CSSL_RAGENT_POSITION_CLAIM_H
#define CSSL_RAGENT_POSITION_CLAIM_H

#include "proto/link.pb-c.h"
#include "ragent/connection/position.h"

/* 0, or CSSL_E_TRUNCATED: @live says nothing of it. */
int position_claim_read(struct position_claim *out, const Cssl__LinkLive *live);

#endif
