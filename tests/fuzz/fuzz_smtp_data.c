/* fuzz_smtp_data.c: the end of data is where a search for its five bytes finds it, however the bytes are cut; a message
 * that was stuffed comes back. */
#include <stdlib.h>
#include <string.h>

#include "smtp/data.h"
#include "tests/fuzz/smtp_cut.h"

static uint32_t refuse;

static uint64_t account(const uint8_t *in, size_t len, size_t step)
{
	struct smtp_data d;
	enum smtp_data_event event = SMTP_DATA_MORE;
	uint64_t sum = 0;
	size_t at = 0, taken;
	smtp_data_begin(&d, refuse);
	while (at < len && event != SMTP_DATA_END) {
		size_t piece = len - at < step ? len - at : step;
		event = smtp_data_follow(&d, (const char *)in + at, piece, &taken);
		MUST(taken <= piece && (event != SMTP_DATA_MORE || taken == piece));
		at += taken;
		if (event == SMTP_DATA_BAD)
			sum = smtp_sum(sum, &at, sizeof at);
	}
	MUST(d.len == at);
	sum = smtp_sum(sum, &d.flaws, sizeof d.flaws);
	sum = smtp_sum(sum, &d.lines, sizeof d.lines);
	sum = smtp_sum(sum, &d.dots, sizeof d.dots);
	return smtp_sum(sum, &at, sizeof at) + event;
}

static void end_is_where_a_search_finds_it(const char *in, size_t len)
{
	struct smtp_data d;
	size_t taken;
	char *whole = malloc(len + 2);
	MUST(whole);
	memcpy(whole, "\r\n", 2);
	memcpy(whole + 2, in, len);
	const char *end = memmem(whole, len + 2, "\r\n.\r\n", 5);
	smtp_data_begin(&d, 0);
	enum smtp_data_event event = smtp_data_follow(&d, in, len, &taken);
	MUST((event == SMTP_DATA_END) == (end != NULL));
	MUST(taken == (end ? (size_t)(end - whole) + 3 : len));
	free(whole);
}

static void stuffing_comes_back(const char *in, size_t len)
{
	struct smtp_dots add = { 0 }, take = { 0 };
	struct smtp_data d;
	size_t taken;
	char *wire = malloc(2 * len + 5);
	MUST(wire);
	size_t wire_len = smtp_dots_add(&add, in, len, wire);
	struct smtp_span end = smtp_dots_end(&add);
	memcpy(wire + wire_len, end.at, end.len);
	wire_len += end.len;
	smtp_data_begin(&d, 0);
	MUST(smtp_data_follow(&d, wire, wire_len, &taken) == SMTP_DATA_END && taken == wire_len);
	size_t back = smtp_dots_remove(&take, wire, wire_len - 3, wire);
	MUST(back == smtp_data_message_len(&d) && back == len + end.len - 3 && memcmp(wire, in, len) == 0);
	free(wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	static const uint32_t refusals[] = { 0, SMTP_DATA_SMUGGLING, SMTP_DATA_BARE | SMTP_DATA_BIT(SMTP_DATA_NUL) };
	for (unsigned i = 0; i < 3; i++) {
		refuse = refusals[i];
		smtp_must_be_the_same(in, len, account);
	}
	if (len == 0)
		return 0;
	end_is_where_a_search_finds_it((const char *)in, len);
	stuffing_comes_back((const char *)in, len);
	return 0;
}
