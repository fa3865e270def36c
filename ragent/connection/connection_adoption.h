/* connection_adoption.h: the next owner of a connection: which agent, its SSL_ID, and its answer. One place raises
 * epochs (law 2), and each ownership begins there with a stream of its own and all records that are not consumed.
 *
 *     HANDED_OFF --> connection_hand_over() --+
 *     lost ---> connection_adopt_lost() ------+--> SSL_ID --> connection_adopted()
 *     RESTING --> connection_wake() ----------+          \--> connection_adopt_refused() --> another agent, or back
 */
#ifndef CSSL_RAGENT_CONNECTION_ADOPTION_H
#define CSSL_RAGENT_CONNECTION_ADOPTION_H

#include "ragent/connection/connection_body.h"

/* It has records or a violation for the next owner, its client waits for something, or its service does not rest. */
bool connection_needs_owner(const struct connection *c);

/* HANDED_OFF: the current owner froze it; find the next one. */
void connection_hand_over(struct connection *c);
/* Its owner @lost is lost, and another one has to go on: at once, or when its turn comes (limits/pace.h). */
void connection_adopt_lost(struct connection *c, int lost);
/* RESTING: it needs an owner now. If there is none, try again for a while. */
void connection_wake(struct connection *c);
/* The same, when its turn comes among the connections of lost owners. */
void connection_wake_in_turn(struct connection *c);
/* The same ownership once more: its agent may not have heard of it. */
void connection_adopt_again(struct connection *c, struct link *l);

void connection_adopted(struct connection *c);
void connection_adopt_refused(struct connection *c, Cssl__LinkRefused__Reason reason);

/* The link on which it should continue: to @wanted; if that agent is not available, to another one, but not to
 * @except. NULL: there is none. */
struct link *connection_find_adopter(struct connection *c, int wanted, int except);
/* The client of a lost owner waited, and now gets its next record. */
void connection_pause_ends(struct connection *c);

#endif
