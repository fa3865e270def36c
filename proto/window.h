/* window.h: sliding anti-replay window over a 64-bit counter (the shape of RFC 4303 3.4.3 and RFC 6479). */
#ifndef CSSL_PROTO_WINDOW_H
#define CSSL_PROTO_WINDOW_H

#include <stdint.h>

#define WINDOW_BITS 1024u

struct replay_window {
	uint64_t next; /* one above the highest counter seen */
	uint64_t bits[WINDOW_BITS / 64];
};

/* Accept no counter below @first. */
void replay_window_init(struct replay_window *w, uint64_t first);

/* 0: @counter is new; the window does not change. CSSL_E_REPLAY: it was seen, or is older than the window. */
int replay_window_check(const struct replay_window *w, uint64_t counter);

/* Mark @counter as seen; only after the message was authenticated. 0 or CSSL_E_REPLAY. */
int replay_window_commit(struct replay_window *w, uint64_t counter);

#endif
