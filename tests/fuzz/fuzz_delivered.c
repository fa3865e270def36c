/* fuzz_delivered.c: notes of answers that can be repeated, and repeated answers. If an answer can be compared with its
 * repetition, the same bytes are found to be the same from every position on, in whatever pieces they come, and a
 * changed byte is found.
 */
#include <string.h>

#include "proto/error.h"
#include "sslagent/service/http/delivered.h"
#include "sslagent/service/http/download.h"
#include "tests/fuzz/must.h"

/* The client has [in, in + at), and its owner is lost. */
static void cut(const struct delivered *begun, const uint8_t *in, size_t at, struct repetition *out)
{
	struct delivered_watch w = { .now = *begun, .ahead = *begun };
	uint8_t note[DELIVERED_NOTE_MAX];

	delivered_passed(&w, in, at / 2);
	const size_t len = delivered_note(&w, in + at / 2, at - at / 2, note);
	MUST(len <= sizeof note && delivered_is_note(note, len));
	MUST(repetition_read(note, len, at, out) == 0);
}

static int hear(struct repetition *r, const uint8_t *in, size_t len, size_t piece, size_t *used)
{
	struct repetition_heard heard;
	size_t offered = 0;
	int known = REPETITION_MORE;

	for (*used = 0; known == REPETITION_MORE && offered < len; *used += heard.len) {
		offered = len - offered < piece ? len : offered + piece;
		known = repetition_hear(r, in + *used, offered - *used, &heard);
		MUST(heard.head_len <= heard.len && heard.len <= offered - *used);
	}
	return known;
}

static void repeat(const uint8_t *in, size_t len)
{
	static uint8_t other[1u << 16];
	struct delivered begun;
	struct repetition r;
	size_t used;

	if (delivered_begins(in, len, &begun) != 0 || len > sizeof other)
		return;
	MUST(begun.head_len > 0 && begun.head_len <= len && begun.len > 0);
	if (begun.len < len - begun.head_len)
		return; /* more than the answer */
	const size_t middle = begun.head_len + (len - begun.head_len) / 2;
	const size_t ats[] = { begun.head_len, middle, len };
	for (size_t i = 0; i < sizeof ats / sizeof ats[0]; i++) {
		cut(&begun, in, ats[i], &r);
		MUST(hear(&r, in, len, i + 1, &used) == 0 && used == ats[i]);
		MUST(r.answer.body.len == ats[i] - begun.head_len);
	}
	if (middle == begun.head_len)
		return;
	memcpy(other, in, len);
	other[middle - 1] ^= 1;
	cut(&begun, in, middle, &r);
	MUST(hear(&r, other, len, len, &used) == CSSL_E_MISMATCH);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	static uint8_t out[1u << 16];
	struct repetition r = { .goal = 3 };
	struct repetition_heard heard;
	char head[ANSWER_HEAD_MAX];

	repeat(in, len);
	if (repetition_hear(&r, in, len, &heard) >= 0)
		MUST(heard.len <= len);
	if (len >= 60 && repetition_read(in, len, 60, &r) == 0)
		MUST(r.goal == 60 - r.answer.head_len &&
			answer_head_write(r.answer.len, r.answer.closes, head) < sizeof head);
	if (len <= sizeof out && download_ask(NULL, 0, in, len, out, len) >= 0)
		MUST(memcmp(in, out, len) == 0);
	return 0;
}
