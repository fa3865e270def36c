/* takeover.h: what becomes of a connection whose owner, or whose adopter, is lost. One pure decision; takeover.c asks
 * its questions in their order. RAgent decides here whether another agent adopts the connection. What that agent says
 * to the client, and whether it makes the request again, it decides itself: only it can open the records.
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
	uint64_t sent_records;   /* client records that the lost agent got and nobody reported as consumed */
	uint64_t unsent_records; /* client records that no agent has seen */
	unsigned losses;         /* with something open, this one included, since the last progress */
	unsigned restarts;       /* of the handshake, after losses before this one */
	uint16_t protocol_version;
	enum { TAKEOVER_NO_COPY, TAKEOVER_HAS_COPY } copy;
	enum { TAKEOVER_NO_DOWNLOAD, TAKEOVER_HAS_DOWNLOAD } download;
	/* are the records from the very first still kept? */
	enum { TAKEOVER_ALL_KEPT, TAKEOVER_SOME_DROPPED } from_start;
	/* Could somebody between the hosts have read what the lost agent sealed and RAgent never received? */
	enum { TAKEOVER_LINK_PRIVATE, TAKEOVER_LINK_EXPOSED } link;
	/* did it get a FIN; or close_notify or a fatal alert, with FIN or before? */
	enum { TAKEOVER_CLIENT_LISTENS, TAKEOVER_CLIENT_TOLD_END, TAKEOVER_CLIENT_TOLD_LAST } client;
};

/* A hello that cost so many agents more than the first one is given to nobody else: it may be what kills them. */
#define TAKEOVER_RESTARTS_MAX 2u

enum takeover {
	TAKEOVER_RESTART, /* the handshake begins again on another agent: its client has seen nothing yet */
	TAKEOVER_REFUSE,  /* it was begun too often; its client has seen nothing still, and is told in the clear */
	TAKEOVER_REST,    /* another agent adopts when the next record comes */
	TAKEOVER_ADOPT,   /* another agent adopts now, or as soon as one is up: it may be able to go on */
	TAKEOVER_ALERT,   /* another agent adopts now, only to tell the client that something is cut off */
	TAKEOVER_OVER,    /* all is said: FIN towards the client */
	TAKEOVER_END      /* reset towards the client */
};

enum takeover takeover_decide(const struct takeover_facts *f);
const char *takeover_name(enum takeover t);

#endif
