/* tx_name.c: a name is id, slash, number; a fate is a word, and perhaps a reply inside the reply. */
#include "smtp/tx_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/error.h"
#include "smtp/reply_write.h"

/* Letters and digits. */
static bool is_word(struct smtp_span word, size_t max)
{
	for (size_t i = 0; i < word.len; i++)
		if (!smtp_is_alnum(word.at[i]))
			return false;
	return word.len > 0 && word.len <= max;
}

int smtp_tx_name_parse(struct smtp_span value, struct smtp_tx_name *out)
{
	struct smtp_span number = value, id = smtp_span_until(&number, '/');
	if (!is_word(id, SMTP_TX_ID_MAX) || number.len == 0 || number.at[0] == '0') /* one name has one form */
		return CSSL_E_RANGE;
	smtp_span_copy(id, out->id, sizeof out->id);
	return smtp_span_number(number, UINT64_MAX, &out->number);
}

void smtp_tx_name_write(struct wire_writer *w, const struct smtp_tx_name *name)
{
	char text[SMTP_TX_ID_MAX + 24];
	int len = snprintf(text, sizeof text, "%.*s/%" PRIu64, (int)SMTP_TX_ID_MAX, name->id, name->number);
	wire_put_bytes(w, text, (size_t)len);
}

void smtp_tx_name_add(struct wire_writer *w, struct smtp_span text, const struct smtp_tx_name *name)
{
	smtp_text_write(w, smtp_span_trim(text));
	smtp_word_write(w, " XCSSLTX=");
	smtp_tx_name_write(w, name);
	smtp_word_write(w, "\r\n");
}

void smtp_tx_name_remove(struct wire_writer *w, struct smtp_span line, struct smtp_span value)
{
	const char *behind = value.at + value.len;
	const char *before = value.at - strlen(" XCSSLTX=");
	wire_put_bytes(w, line.at, (size_t)(before - line.at));
	wire_put_bytes(w, behind, (size_t)(line.at + line.len - behind));
}

/* --- what became of a transaction --- */

#define ANSWER_CODE 250u

static const char *const words[] = {
	[SMTP_FATE_DECIDED] = "decided",
	[SMTP_FATE_NEVER] = "never",
	[SMTP_FATE_UNKNOWN] = "unknown",
};

#define WORDS (sizeof words / sizeof words[0])

bool smtp_tx_entry_is_good(struct smtp_span entry)
{
	return is_word(entry, SMTP_TX_ENTRY_MAX);
}

int smtp_tx_question_parse(struct smtp_span argument, struct smtp_tx_question *out)
{
	struct smtp_span entry = argument, name = smtp_span_word(&entry);
	if (smtp_tx_name_parse(name, &out->name) < 0 || !smtp_tx_entry_is_good(entry))
		return CSSL_E_RANGE;
	return smtp_span_copy(entry, out->entry, sizeof out->entry);
}

void smtp_tx_question_write(struct wire_writer *w, const struct smtp_tx_question *question)
{
	smtp_word_write(w, "XCSSLTX ");
	smtp_tx_name_write(w, &question->name);
	smtp_word_write(w, " ");
	smtp_word_write(w, question->entry);
	smtp_word_write(w, "\r\n");
}

int smtp_fate_parse(const struct smtp_reply_line *line, struct smtp_reply_line *decided)
{
	struct smtp_span rest = line->text, word = smtp_span_word(&rest);
	unsigned fate = 0;
	while (fate < WORDS && !smtp_span_is(word, words[fate]))
		fate++;
	if (line->code != ANSWER_CODE || fate == WORDS)
		return CSSL_E_RANGE;
	if (fate != SMTP_FATE_DECIDED)
		return rest.len == 0 && line->is_last ? (int)fate : CSSL_E_RANGE;
	/* The end of a content is answered by 2xx, 4xx or 5xx. Both replies have the same number of lines. */
	if (smtp_reply_line_parse(rest, decided) < 0 || decided->code / 100 == 3 || decided->is_last != line->is_last)
		return CSSL_E_RANGE;
	return SMTP_FATE_DECIDED;
}

void smtp_fate_write(struct wire_writer *w, enum smtp_fate fate, struct smtp_span decided)
{
	smtp_word_write(w, fate == SMTP_FATE_DECIDED && decided.len > 3 && decided.at[3] == '-' ? "250-" : "250 ");
	smtp_word_write(w, words[fate]);
	if (fate == SMTP_FATE_DECIDED) {
		smtp_word_write(w, " ");
		smtp_text_write(w, decided);
	}
	smtp_word_write(w, "\r\n");
}
