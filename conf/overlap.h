/* overlap.h: of the addresses that one process listens on, none may be in another's way: it would not start. Processes
 * of several hosts may well have the same. */
#ifndef CSSL_CONF_OVERLAP_H
#define CSSL_CONF_OVERLAP_H

#include "conf/complaints.h"
#include "conf/conf.h"

/* Of each RAgent and each agent of @conf. */
void overlap_check(struct complaints *c, const struct conf *conf);

#endif
