/* sources.h: the pool of addresses that connections to receivers come from. */
#ifndef CSSL_SMTPPROXY_SOURCES_H
#define CSSL_SMTPPROXY_SOURCES_H

#include "conf/smtpproxy.h"

/* The source of the @nth connection to a destination of @family, by weight and in turn. NULL: the pool has none of this
 * family, so the kernel chooses. */
const struct smtpproxy_source *sources_pick(const struct smtpproxy_outward *outward, sa_family_t family, uint32_t nth);

#endif
