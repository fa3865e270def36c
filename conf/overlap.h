/* overlap.h: checks that no process listens on an address twice, because it would not start. Processes on different
 * hosts may have the same address. */
#ifndef CSSL_CONF_OVERLAP_H
#define CSSL_CONF_OVERLAP_H

#include "conf/complaints.h"
#include "conf/conf.h"

/* Check each RAgent and each agent of @conf. */
void overlap_check(struct complaints *c, const struct conf *conf);

#endif
