/* window.c: a ring of WINDOW_BITS bits; the counter is the index. The bits of [next - WINDOW_BITS, next) are valid.
 * A step forward clears the bits that it passes over, so nothing is shifted. */
#include "proto/window.h"

#include <string.h>

#include "proto/error.h"

#define WORD_BITS 64u
#define WORDS     (WINDOW_BITS / WORD_BITS)

static uint64_t *word_of(struct replay_window *w, uint64_t counter)
{
	return &w->bits[counter / WORD_BITS % WORDS];
}

static uint64_t bit_of(uint64_t counter)
{
	return UINT64_C(1) << counter % WORD_BITS;
}

void replay_window_init(struct replay_window *w, uint64_t first)
{
	w->next = first;
	memset(w->bits, 0xff, sizeof w->bits);
}

int replay_window_check(const struct replay_window *w, uint64_t counter)
{
	/* `next` cannot hold a successor of the last counter; no sender gets that far. */
	if (counter == UINT64_MAX)
		return CSSL_E_REPLAY;
	if (counter >= w->next)
		return 0;
	if (w->next - counter > WINDOW_BITS)
		return CSSL_E_REPLAY;
	return w->bits[counter / WORD_BITS % WORDS] & bit_of(counter) ? CSSL_E_REPLAY : 0;
}

/* Clear the bits of [from, to), word by word. */
static void forget(struct replay_window *w, uint64_t from, uint64_t to)
{
	if (to - from >= WINDOW_BITS) {
		memset(w->bits, 0, sizeof w->bits);
		return;
	}
	while (from < to) {
		uint64_t room = WORD_BITS - from % WORD_BITS;
		uint64_t count = to - from < room ? to - from : room;
		*word_of(w, from) &= ~(UINT64_MAX >> (WORD_BITS - count) << from % WORD_BITS);
		from += count;
	}
}

int replay_window_commit(struct replay_window *w, uint64_t counter)
{
	int r = replay_window_check(w, counter);
	if (r < 0)
		return r;
	if (counter >= w->next) {
		forget(w, w->next, counter + 1);
		w->next = counter + 1;
	}
	*word_of(w, counter) |= bit_of(counter);
	return 0;
}
