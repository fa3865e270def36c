/* fuzz_http_follower.c: a follower of HTTP/1.1 that moves between any two pieces is in the same state as one that
 * does not move. The input is pieces: one byte with the direction (the highest bit is the backend's) and the length,
 * then so many bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "sslagent/service/http/http_follower.h"
#include "tests/fuzz/must.h"

enum way { STAYS, MOVES };

struct facts {
	unsigned gave_up, judges, outstanding, asking, head, begun, answered, answering, persistent, last, awaits,
		repeat;
	unsigned framing, between, end;
};

static struct slabs blocks;

static struct http_follower *move(struct http_follower *h)
{
	static uint8_t state[HTTP_FOLLOWER_STATE_MAX];
	ptrdiff_t len = http_follower_save(h, state);

	if (len < 0) /* too long: it stays */
		return h;
	http_follower_destroy(&blocks, h);
	h = http_follower_restore(&blocks, state, (size_t)len);
	MUST(h);
	return h;
}

static struct facts look(struct http_follower *h)
{
	struct http_past past;

	return (struct facts){ .gave_up = (unsigned)(h->following == HTTP_GAVE_UP),
		.judges = (unsigned)http_judges_ends(h),
		.outstanding = http_outstanding(h),
		.asking = (unsigned)http_asking(h),
		.head = http_head_under_way(h),
		.begun = h->begun,
		.answered = h->answered,
		.answering = (unsigned)http_answering(h),
		.persistent = (unsigned)(h->persistence == PERSISTENT),
		.last = (unsigned)http_said_last(h),
		.awaits = (unsigned)http_awaits_download(h),
		.repeat = h->repeat,
		.framing = h->framing,
		.between = (unsigned)http_between_exchanges(h, &past),
		.end = (unsigned)http_follow_response_end(h) };
}

static struct facts follow(const uint8_t *in, size_t len, enum way way)
{
	const struct http_past nothing = { 0 };
	struct http_follower *h = http_follower_create(&blocks, nothing);

	MUST(h);
	for (size_t at = 0, used; at < len;) {
		int is_backend = in[at] >> 7;
		size_t piece = in[at] & 0x7f;
		at++;
		piece = piece < len - at ? piece : len - at;
		if (piece && is_backend)
			http_follow_response(h, in + at, piece);
		else if (piece)
			http_follow_request(h, in + at, piece, SERVICE_ALL, &used);
		if (way == MOVES)
			h = move(h);
		at += piece;
	}
	struct facts f = look(h);
	http_follower_destroy(&blocks, h);
	return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	slabs_init(&blocks, sizeof(struct http_follower));
	struct facts stayed = follow(in, len, STAYS), moved = follow(in, len, MOVES);
	MUST(memcmp(&stayed, &moved, sizeof stayed) == 0);
	struct http_follower *h = http_follower_restore(&blocks, in, len);
	if (h)
		look(h);
	http_follower_destroy(&blocks, h);
	slabs_clear(&blocks);
	return 0;
}
