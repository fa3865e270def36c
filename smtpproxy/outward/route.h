/* route.h: how connections to one receiver are made, by the file. A part of its own, because it is the only one that
 * reads the file's rows of receivers and sources; it has no state. Called by outward.c and destination.c. */
#pragma once

#include "proto/ids.h"
#include "smtpproxy/outward/onward.h"

/* The facts by which a destination is asked for. Two destinations are the same only if all these facts are. */
struct destination_goal {
	const struct sockaddr *to;
	const char *host;       /* its name; NULL: not known */
	enum dns_trust trust;   /* of @host */
	enum smtpproxy_tls tls; /* BY_ADDRESS: as the file says for the address */
	/* ONWARD_ID_LEN bytes: connections to it begin with a PROXY header that has this id, and each carries one
	 * transaction; NULL: no header */
	const uint8_t *unique_id;
};

/* The route to @goal for a session of @from, without what route_apply_file() sets. */
struct onward_route route_make(
	const struct conf_smtpproxy *c, const struct destination_goal *goal, const struct client_address *from);
/* Sets @r->tls and the name that is expected, which is the file's, or @goal->host. Returns the most connections to the
 * receiver. */
uint32_t route_apply_file(struct onward_route *r, const struct conf_smtpproxy *c, const struct destination_goal *goal);

/* For tables: of all facts of a route; of its receiver only. */
uint32_t route_hash(const struct onward_route *r);
uint32_t route_receiver_hash(const struct onward_route *r);
bool route_is_same(const struct onward_route *a, const struct onward_route *b);

/* The address of ours for the @nth connection to a receiver of @family, by weight and in turn. NULL: the file has none
 * of this family, so the kernel chooses. */
const struct smtpproxy_source *route_pick_source(
	const struct smtpproxy_outward *outward, sa_family_t family, uint32_t nth);
