/* lost_owner.h: one connection whose owner is lost, for the facts of takeovers. */
#pragma once

#include "tests/unit/ragent/dispatcher.h"

extern struct live_connection l;

/* Start the dispatcher; the affinity agent owns @l, at a checkpoint. */
void begin_owned(void);
void begin_owned_with(const struct dispatcher_wish *wish);
/* The client's next request, one record; the owner has it. */
void request(uint16_t body);
/* The owner gave all records below @records to the backend. */
void consumed(uint64_t records, uint32_t read_generation, uint8_t flags);
/* The owner leaves the note @blob for the answer that it gives. */
void leave_download(const char *blob);
/* The owner dies. Returns what its successor is told, for forget(). */
Cssl__LinkSslId *lose_owner(void);
void forget(Cssl__LinkSslId *id);
/* The process of that agent is known to be dead. */
void call_dead(int agent);
