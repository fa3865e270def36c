/* hops.h: counts how often a message was passed on: its Received fields (RFC 5321 6.3). A transparent proxy adds
 * none, but in a mail loop it sees those of the servers. In pieces of any size.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum hops_state { HOPS_LINE_BEGINS, HOPS_MATCHES, HOPS_WITHIN_LINE, HOPS_IN_BODY };

/* Embedded; zero is the head of a message. */
struct hops {
	uint32_t count;
	uint8_t state;   /* enum hops_state */
	uint8_t matched; /* bytes of the field's name */
};

/* Follow @len bytes of the content. Returns the fields so far. */
uint32_t hops_follow(struct hops *h, const char *in, size_t len);
