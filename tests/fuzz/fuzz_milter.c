/* fuzz_milter.c: a milter's packets, whose changes are made to a message that has any bytes, too. Whatever they are,
 * DATA carries one message: its only end is at its end. */
#include <string.h>

#include "smtp/data.h"
#include "smtpproxy/hooks/message.h"
#include "smtpproxy/hooks/milter_wire.h"
#include "tests/fuzz/must.h"

#define CHANGES_MAX 64u

static void change(struct message *m, uint8_t letter, struct wire_reader r)
{
	struct smtp_span name, value;
	const uint32_t at = letter == MILTER_ADD_HEADER ? UINT32_MAX : wire_u32(&r);

	if (milter_read_text(&r, &name) < 0 || milter_read_text(&r, &value) < 0)
		return;
	if (letter == MILTER_CHANGE_HEADER)
		message_change(m, at, name, value);
	else if (letter == MILTER_ADD_HEADER || letter == MILTER_INSERT_HEADER)
		message_insert(m, at, name, value);
}

static void read_reply(struct wire_reader r)
{
	uint8_t out[1024];
	struct wire_writer w = wire_writer(out, sizeof out);
	struct smtp_span text;

	if (milter_read_text(&r, &text) == 0 && milter_write_reply(&w, text) == 0 && wire_writer_len(&w) > 0)
		MUST(out[0] == '4' || out[0] == '5');
}

/* Only what DATA can carry gets so far: without flaws, and with its end. */
static int begin(struct message *m, const char *in, size_t len)
{
	struct smtp_data d;
	size_t taken;

	smtp_data_begin(&d, SMTP_DATA_SMUGGLING | SMTP_DATA_BARE);
	if (smtp_data_follow(&d, in, len, &taken) != SMTP_DATA_END)
		return -1;
	return message_add(m, in, taken, len) < 0 || message_read(m) < 0 ? -1 : 0;
}

static void check(struct message *m)
{
	enum smtp_data_event event = SMTP_DATA_MORE;
	char out[128];
	struct smtp_data d;
	size_t len, taken;

	smtp_data_begin(&d, SMTP_DATA_SMUGGLING);
	while ((len = message_next(m, out, sizeof out)) > 0) {
		MUST(event == SMTP_DATA_MORE);
		event = smtp_data_follow(&d, out, len, &taken);
		MUST(taken == len);
	}
	MUST(event == SMTP_DATA_END);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t half = size > 0 ? data[0] * (size - 1) / 255 : 0;
	struct message m = { 0 };
	struct milter_options o;
	struct wire_reader rest;
	size_t used = 1 + half, taken = 0;
	uint8_t letter;

	if (size == 0 || begin(&m, (const char *)data + 1, half) < 0) {
		message_free(&m);
		return 0;
	}
	for (unsigned i = 0; i < CHANGES_MAX && milter_take(data + used, size - used, &taken, &letter, &rest) == 1;
		i++) {
		change(&m, letter, rest);
		read_reply(rest);
		milter_read_options(rest, &o);
		used += taken;
	}
	check(&m);
	message_free(&m);
	return 0;
}
