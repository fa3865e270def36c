/* courier_dialogue.h: what a courier says to its receiver, and what the replies mean. A part of its own, because it
 * knows commands and replies only: who ends the lease, and where the message goes then, is the courier's. Called by
 * courier.c, within a lease. */
#pragma once

#include "smtpproxy/delivery/courier.h"

/* What the courier has to do now. After GOES_ON a reply or room for more content is due. */
enum courier_outcome {
	COURIER_GOES_ON,
	COURIER_IS_DONE,    /* decided; the receiver is between transactions */
	COURIER_BREAKS_OFF, /* the receiver is at no place where another transaction could begin */
	COURIER_MAY_NOT,    /* the lease of the queue is over: the message goes back, and the final dot is not said */
};

/* The first command: MAIL, or the question how the last attempt ended. */
void courier_dialogue_begin(struct courier *c);
/* Bytes of the receiver came. */
enum courier_outcome courier_dialogue_hear(struct courier *c, const char *data, size_t len);
/* The receiver took output. */
enum courier_outcome courier_dialogue_on_room(struct courier *c);
/* The receiver is lost, or is let go. If it may have the whole message, the message is in doubt. */
void courier_dialogue_doubt(struct courier *c, const char *cause);
