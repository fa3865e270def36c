/* predecessor.h: the channel to the process that this one has replaced, as long as that one has sessions. */
#ifndef CSSL_SMTPPROXY_PREDECESSOR_H
#define CSSL_SMTPPROXY_PREDECESSOR_H

#include "net/stream.h"
#include "smtpproxy/ledger/tx_before.h"

/* Embedded; all zero before. */
struct predecessor {
	struct stream stream; /* first */
	struct tx_before *before;
};

/* Takes over @fd. A failure means that no question can be asked, and is logged. */
void predecessor_open(struct predecessor *p, struct worker *w, int fd, struct tx_before *before);
void predecessor_close(struct predecessor *p); /* legal when it is not open */

#endif
