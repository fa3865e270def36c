/* receiver_share.h: what is true of a receiver, whoever connects to it: how many connections it takes, those that
 * exist, and whether its TLS works. A part of its own, because several destinations may lead to one receiver: each of a
 * single message with a name (destination_goal.unique_id), and each of one sender (`as_sender`). Any other destination
 * has a share of its own. Called by destination.c; outward.c keeps the shares of several destinations. */
#pragma once

#include "net/memory/table.h"
#include "smtpproxy/outward/fallback.h"
#include "smtpproxy/outward/onwards.h"
#include "smtpproxy/outward/receiver_limit.h"

struct destination;

LIST_HEAD(destination_list, destination);

struct receiver_share {
	struct table_link link;
	struct sockaddr_storage to;
	enum onward_head head; /* of its destinations */
	struct receiver_limit limit;
	struct fallback fallback;
	struct destination_list members; /* not of a destination's own one */
	uint32_t in[DESTINATION_PLACES];
	uint32_t sessions;                 /* that have entered its destinations */
	TAILQ_HEAD(, destination) waiting; /* for the end of a connection of another destination */
};

/* WOKEN: it was the first that waited, and has its step next. */
enum destination_wait { DESTINATION_WAITS_NOT, DESTINATION_WAITS, DESTINATION_WOKEN };

void receiver_share_init(struct receiver_share *s, uint64_t now_ms);
/* @d waits for the end of a connection of another destination with its share: as the first one if it was woken and has
 * got nothing, else as the last. False: it waits already, or has a share of its own. */
bool receiver_share_wait(struct destination *d);
void receiver_share_wait_no_more(struct destination *d);
/* There is room for a connection: the first that waits, which needs a step now. NULL: none waits. */
struct destination *receiver_share_wake(struct receiver_share *s);
/* Another destination waits for room. */
bool receiver_share_is_wanted(const struct destination *d);
