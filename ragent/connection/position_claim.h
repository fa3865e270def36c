/* position_claim.h: the position of a connection as its owner claims it in KEPT or HANDED_OFF. Pure. */
#ifndef CSSL_RAGENT_POSITION_CLAIM_H
#define CSSL_RAGENT_POSITION_CLAIM_H

#include "proto/link.pb-c.h"
#include "ragent/connection/position.h"

/* 0, or CSSL_E_TRUNCATED: @live has no position. */
int position_claim_read(struct position_claim *out, const Cssl__LinkLive *live);

#endif
