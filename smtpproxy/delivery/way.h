/* way.h: the way of a message: the addresses at which it is tried, one after the other (RFC 5321 5.1), and what TLS
 * with them has to be.
 */
#pragma once

#include "smtpproxy/delivery/delivery.h"
#include "smtpproxy/dns/exchangers.h"
#include "smtpproxy/outward/route.h"

/* Embedded, all zero but for on_found. */
struct way {
	void (*on_found)(struct way *w);
	enum smtp_own why; /* no address is left, and none was good: the reason. A 5xx is for good */
	const struct delivery_parts *parts;
	const char *name;                                         /* of the queue's line */
	const struct smtpproxy_domain *known;                     /* its row of the file, or NULL */
	enum way_hop { WAY_HOP_OF_DOMAIN, WAY_HOP_OF_QUEUE } hop; /* QUEUE: @fixed is queue.next_hop */
	struct sockaddr_storage fixed;                            /* one address, without the DNS; family 0: none */
	struct exchangers exchangers;
	unsigned next; /* of the exchangers */
};

enum way_start { WAY_KNOWN, WAY_ASKS };

/* @name lives as long as the way. KNOWN: way_next() may be called. ASKS: on_found comes first, not from within this
 * call. Negative: CSSL_E_NO_MEMORY. */
int way_begin(struct way *w, const struct delivery_parts *parts, const char *name);

/* 1 with the next address in @goal, which points into the way. 0: none is left. */
bool way_next(struct way *w, struct destination_goal *goal);
bool way_has_next(const struct way *w);

/* There will be no on_found; frees what it holds. In any state. */
void way_forget(struct way *w);
