/* words.h: what the agent says to the client itself, and the end after that. It is a part by itself, because law 8 (no
 * forged end) is kept here. Each may end the connection: check its state afterwards.
 */
#pragma once

#include "sslagent/connection/connection_life.h"
#include "sslagent/connection/conversation.h"

void words_say_due(struct connection *c); /* KeyUpdate or warning that the record layer owes */
/* Send the words that the service has now, if there is room. Returns the bytes sent. */
size_t words_say(struct connection *c);
/* A service that stands between: seal its replies. true: none waits any more, or the connection ended. */
bool words_say_replies(struct connection *c);

/* An owner: send @words as soon as that is allowed, and end. */
void words_finish(struct connection *c, enum last_words words, enum end_reason reason);
/* The service wants the conversation to end: send the reason, and end. */
void words_part(struct connection *c, enum service_parting why);
void words_backend_lost(struct connection *c, enum end_reason reason);
/* There is no backend connection, or it failed. Without one, this process lacks descriptors or memory. */
void words_backend_unreachable(struct connection *c);
/* If the client said its last, and the backend has it and has answered. */
void words_finish_if_over(struct connection *c);

/* ENDING: the client took records, it ought to end at once, or words that were sent before the last ones are read. */
connection_reaction words_go_on;
