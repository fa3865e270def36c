/* capture.h: finds the destination that a captured connection wanted to reach. */
#ifndef CSSL_SMTPPROXY_CAPTURE_H
#define CSSL_SMTPPROXY_CAPTURE_H

#include "conf/smtpproxy.h"
#include "proto/proxy_header.h"

/* For a connection that the kernel redirected (SO_ORIGINAL_DST) or delivered unchanged (TPROXY). 0, or
 * CSSL_E_NOT_FOUND: the sender connected to the listener itself. */
int capture_destination(
	int fd, enum smtpproxy_capture how, const struct sockaddr *listener, struct sockaddr_storage *out);

/* From a PROXY header. 0 with both addresses, or CSSL_E_NOT_FOUND: it has none (LOCAL: a health check). */
int capture_of_header(
	const struct proxy_header *h, struct sockaddr_storage *source, struct sockaddr_storage *destination);

#endif
