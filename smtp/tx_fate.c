/* tx_fate.c: a name and an entry; a word, and perhaps a reply inside the reply. */
#include "smtp/tx_fate.h"

#include "proto/error.h"
#include "smtp/reply_write.h"

#define ANSWER_CODE 250u

static const char *const words[] = {
	[SMTP_FATE_DECIDED] = "decided",
	[SMTP_FATE_NEVER] = "never",
	[SMTP_FATE_UNKNOWN] = "unknown",
};

#define WORDS (sizeof words / sizeof words[0])

int smtp_tx_entry_is_good(struct smtp_span entry)
{
	for (size_t i = 0; i < entry.len; i++) {
		if (!smtp_is_alnum(entry.at[i]))
			return 0;
	}
	return entry.len > 0 && entry.len <= SMTP_TX_ENTRY_MAX;
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
