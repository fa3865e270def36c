/* epochs_seen.h: the highest epoch of each connection that any agent was heard to own it under, and which connections
 * are known to have ended; remembered for a while. A table of fixed size: 8 places for each hash value, the oldest
 * gives way. Thread-safe. */
#ifndef CSSL_SSLAGENT_EPOCHS_SEEN_H
#define CSSL_SSLAGENT_EPOCHS_SEEN_H

#include "proto/sess_obj.h"

struct epochs_seen;

/* @entries: rounded up to a power of two. What gives way before @keep_ms is counted. */
struct epochs_seen *epochs_seen_create(size_t entries, uint32_t keep_ms);
void epochs_seen_destroy(struct epochs_seen *e);

/* 0 and remembered; CSSL_E_REPLAY: this or a higher one was seen. */
int epochs_seen_claim(struct epochs_seen *e, const struct connection_id *id, uint16_t epoch, int64_t now_ms);
/* Another agent owns it under @epoch. */
void epochs_seen_note(struct epochs_seen *e, const struct connection_id *id, uint16_t epoch, int64_t now_ms);

/* It ended, or rests: known until it goes on under a higher epoch. */
void epochs_seen_end(struct epochs_seen *e, const struct connection_id *id, int64_t now_ms);
int epochs_seen_ended(struct epochs_seen *e, const struct connection_id *id);

#endif
