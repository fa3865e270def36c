/* takeover.h: decides what happens to a connection whose owner or adopter is lost. It is one function without
 * effects; takeover.c has its conditions in order. RAgent decides here whether another agent adopts the connection.
 * Only that agent can open the records. So it decides itself what it sends to the client, and whether it repeats the
 * request.
 *
 * connection_loss.c calls it only after loss_of_current() found nothing to wait for: the owner's next link is not
 * awaited, or came in vain, and no bytes of the lost owner are missing.
 */
#pragma once

#include "ragent/connection/connection_body.h"

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

/* @lost had it, or was told to adopt it; the loss is noted in its exposure. */
enum takeover takeover_decide(const struct connection *c, const struct conf_agent *lost);
