/* fuzz_h2.c: a conversation of HTTP/2 stands where it stands however its bytes are cut, and wherever it moves between
 * two of them; what the agent says goes between two frames. The input is pieces: one byte with the direction (the
 * highest bit is the backend's) and the length, then so many bytes.
 */
#include <string.h>

#include "sslagent/service/h2/h2_follower.h"
#include "tests/fuzz/must.h"

enum cut { WHOLE, BYTES, MOVED };

struct standing {
	unsigned phase, open, idle, amid, last, asked, head, failed,
		farewell_len; /* no gap: they are compared as bytes */
	uint8_t farewell[64];
};

static struct slabs blocks;

/* All of them reach the client, or wait: a header that is not whole, or words that wait for their frame. */
static void give(struct h2_follower *h, const uint8_t *data, size_t len)
{
	size_t used = 0, words_len;

	for (size_t before = 1; before != 0;) {
		const size_t held = h2_hold(h, data + used, len - used);
		size_t said = 0;
		used += held;
		for (const uint8_t *words; (words = h2_words(h, &words_len)) != NULL; said += words_len)
			h2_from_backend(h, words, words_len);
		const size_t n = h2_until_words(h, data + used, len - used);
		MUST(n <= len - used);
		h2_from_backend(h, data + used, n);
		used += n;
		before = held + said + n;
	}
	MUST(used == len);
}

static void say(struct h2_follower *h, int is_backend, const uint8_t *data, size_t len)
{
	struct service_outgoing p;

	for (size_t used = 0, n; used < len && !is_backend; used += n) {
		n = h2_from_client(h, data + used, len - used, &p);
		MUST(n > 0 && n <= len - used && (p.len <= n || h->phase == H2_LOST));
	}
	if (is_backend)
		give(h, data, len);
}

static struct h2_follower *move(struct h2_follower *h)
{
	uint8_t state[H2_STATE_MAX];

	if (h->phase > H2_FOLLOWS)
		return h;
	size_t len = h2_follower_save(h, state);
	if (len == 0)
		return h;
	h2_follower_destroy(&blocks, h);
	h = h2_follower_restore(&blocks, state, len);
	MUST(h);
	return h;
}

static struct standing look(struct h2_follower *h)
{
	struct standing s = { .phase = h->phase,
		.open = h->streams.count,
		.idle = (unsigned)h2_is_idle(h),
		.amid = (unsigned)h2_is_amid_answer(h),
		.last = (unsigned)h2_said_last(h),
		.asked = h->newest != 0,
		.head = h2_head_under_way(h) };
	size_t len;
	const uint8_t *words = h2_farewell(h, H2_NO_ERROR, &len);

	MUST((words == NULL) == (s.amid != 0));
	s.failed = (unsigned)h2_failed(h);
	MUST(s.open <= H2_STREAMS_MAX);
	MUST(!s.idle || s.open == 0);
	s.farewell_len = words ? (unsigned)len : 0;
	if (words)
		memcpy(s.farewell, words, len);
	return s;
}

static struct standing follow(const uint8_t *in, size_t len, enum cut cut)
{
	struct h2_follower *h = h2_follower_create(&blocks);

	MUST(h);
	if (len && in[0] == 0x80)
		h->phase = H2_STRANDED;
	for (size_t at = 0; at < len;) {
		int is_backend = in[at] >> 7;
		size_t piece = in[at] & 0x7f;
		at++;
		piece = piece < len - at ? piece : len - at;
		size_t step = cut == WHOLE ? piece : 1;
		for (size_t i = 0; i < piece; i += step) {
			say(h, is_backend, in + at + i, step);
			if (cut == MOVED)
				h = move(h);
		}
		at += piece;
	}
	struct standing s = look(h);
	size_t words_len;
	h2_wind_down(h);
	for (const uint8_t *words; (words = h2_words(h, &words_len)) != NULL;)
		h2_from_backend(h, words, words_len);
	MUST(h2_is_amid_answer(h) == (int)s.amid);
	h2_follower_destroy(&blocks, h);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	slabs_init(&blocks, sizeof(struct h2_follower));
	struct standing whole = follow(in, len, WHOLE), bytes = follow(in, len, BYTES), moved = follow(in, len, MOVED);
	MUST(memcmp(&whole, &bytes, sizeof whole) == 0);
	MUST(memcmp(&whole, &moved, sizeof whole) == 0);
	struct h2_follower *h = h2_follower_restore(&blocks, in, len);
	if (h)
		look(h);
	h2_follower_destroy(&blocks, h);
	slabs_clear(&blocks);
	return 0;
}
