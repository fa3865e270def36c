/* takeover.h: decides what happens to a connection whose owner or adopter is lost. It is one pure function;
 * takeover.c has its conditions in order. RAgent decides here whether another agent adopts the connection. Only that
 * agent can open the records. So it decides itself what it sends to the client, and whether it repeats the request.
 *
 * connection_takeover.c calls it only after current_lost() found nothing to wait for: the owner's next link is not
 * awaited (connection_reattach.c: may_wait), or came in vain, and no bytes of the lost owner are missing.
 */
#ifndef CSSL_RAGENT_TAKEOVER_H
#define CSSL_RAGENT_TAKEOVER_H

#include <stdint.h>

#include "conf/conf.h"
#include "ragent/connection/position.h"

struct takeover_facts {
	enum position_stage stage;
	enum position_response response;
	const struct service_traits *service;
	enum conf_agent_loss on_agent_loss;
	uint64_t server_records; /* committed */
	uint64_t sent_records;   /* client records that the lost agent got and no agent reported as consumed */
	uint64_t unsent_records; /* client records that no agent has seen */
	unsigned losses;         /* with something open, since the last progress; this one included */
	unsigned restarts;       /* of the handshake, after earlier losses */
	uint16_t protocol_version;
	enum { TAKEOVER_NO_COPY, TAKEOVER_HAS_COPY } copy;
	enum { TAKEOVER_NO_DOWNLOAD, TAKEOVER_HAS_DOWNLOAD } download;
	/* are the records since the first still kept? */
	enum { TAKEOVER_ALL_KEPT, TAKEOVER_SOME_DROPPED } from_start;
	/* could an observer between the hosts have read records that the lost agent sealed and RAgent never got? */
	enum { TAKEOVER_LINK_PRIVATE, TAKEOVER_LINK_READABLE } link;
	/* did the client get a FIN; or close_notify or a fatal alert, with or without FIN? */
	enum { TAKEOVER_CLIENT_LISTENS, TAKEOVER_CLIENT_TOLD_END, TAKEOVER_CLIENT_TOLD_LAST } client;
};

/* If a hello met so many losses after the first, no agent gets it again: it may be what kills them. */
#define TAKEOVER_RESTARTS_MAX 2u

enum takeover {
	TAKEOVER_RESTART, /* the handshake begins again on another agent: the client has received nothing yet */
	TAKEOVER_REFUSE,  /* it began too often; the client has received nothing yet, and gets an alert in clear */
	TAKEOVER_REST,    /* another agent adopts when the next record comes */
	TAKEOVER_ADOPT,   /* another agent adopts now, or as soon as one is up: it may be able to go on */
	/* another agent adopts now, only to send an alert because something is cut off; a service that resolves the
	 * loss may ask its server before */
	TAKEOVER_ALERT,
	TAKEOVER_OVER, /* the client has all that it is due: send it FIN */
	TAKEOVER_END   /* reset the client's connection */
};

enum takeover takeover_decide(const struct takeover_facts *f);
const char *takeover_name(enum takeover t);

#endif
