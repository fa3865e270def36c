/* ehlo.c: the lines of a capability set follow each other in its text. */
#include "smtp/ehlo.h"

#include <string.h>

#include "proto/error.h"
#include "smtp/reply_write.h"

static const char *const keywords[] = {
#define X(name, keyword) [SMTP_CAP_##name] = keyword,
	SMTP_CAPS(X)
#undef X
		[SMTP_CAP_OTHER] = "",
};

/* Where nothing else is said, a command has the same name. */
static const char *const foreign[] = {
	"ATRN", /* RFC 2645: turns the session round */
	"BURL", /* RFC 4468: a command in place of BDAT */
	"ONEX", /* sendmail */
	"PRDR", /* draft-hall-prdr: a reply for each recipient at the end of a mail */
	"SAML",
	"SEND",
	"SOML",
	"TURN", /* RFC 821 3.4, 3.8; RFC 5321 appendix F */
	"VERB", /* sendmail */
	/* Exchange: sessions between its own servers, and TLS by another name */
	"X-ANONYMOUSTLS",
	"X-EXPS",
	"X-LINK2STATE",
	"XEXCH50",
	"XPROXY",
	"XPROXYFROM",
	"XPROXYTO",
	"XQDISCARD",
	"XRDST",
	"XSHADOW",
	"XSHADOWREQUEST",
};

const char *smtp_cap_keyword(enum smtp_cap cap)
{
	return cap < SMTP_CAP_OTHER ? keywords[cap] : "";
}

void smtp_ehlo_clear(struct smtp_ehlo *set)
{
	set->has = 0;
	set->count = set->text_len = 0;
}

bool smtp_cap_is_foreign(struct smtp_span keyword)
{
	size_t i = 0;
	while (i < sizeof foreign / sizeof foreign[0] && !smtp_span_is(keyword, foreign[i]))
		i++;
	return i < sizeof foreign / sizeof foreign[0];
}

_Static_assert(SMTP_CAP_FOREIGN < 24, "8 bits are left for keywords");

uint32_t smtp_cap_verb_bit(struct smtp_span keyword)
{
	unsigned sum = 0;
	for (size_t i = 0; i < keyword.len; i++)
		sum = sum * 31 + ((unsigned char)keyword.at[i] & ~0x20u);
	return 1u << (24 + (sum * 0x9e3779b1u >> 29)); /* Knuth's multiplicative hash */
}

static enum smtp_cap find_cap(struct smtp_span keyword)
{
	unsigned cap = 0;
	if (smtp_cap_is_foreign(keyword))
		return SMTP_CAP_FOREIGN;
	while (cap < SMTP_CAP_OTHER && !smtp_span_is(keyword, keywords[cap]))
		cap++;
	return (enum smtp_cap)cap;
}

/* RFC 5321 4.1.1.1: ehlo-keyword = (ALPHA / DIGIT) *(ALPHA / DIGIT / "-"). */
static size_t keyword_len(struct smtp_span line)
{
	size_t len = smtp_span_keyword(line);
	bool ends = len == line.len || line.at[len] == ' ' || line.at[len] == '=';
	return ends ? len : 0;
}

static bool params_are_good(struct smtp_span params)
{
	for (size_t i = 0; i < params.len; i++)
		if (params.at[i] < ' ' || params.at[i] > '~')
			return false;
	return true;
}

/* Append @row with its @text, which may be in @set, behind what stays. */
static void smtp_ehlo_append(struct smtp_ehlo *set, struct smtp_ehlo_line row, const char *text)
{
	row.at = set->text_len;
	memmove(set->text + row.at, text, row.len);
	set->text_len = (uint16_t)(row.at + row.len);
	set->lines[set->count++] = row;
	set->has |= SMTP_CAP_BIT(row.cap);
	if (row.cap == SMTP_CAP_OTHER)
		set->has |= smtp_cap_verb_bit((struct smtp_span){ set->text + row.at, row.keyword_len });
}

int smtp_ehlo_add(struct smtp_ehlo *set, struct smtp_span line)
{
	line = smtp_span_trim(line);
	size_t keyword = keyword_len(line);
	if (keyword == 0 || !params_are_good(line))
		return CSSL_E_RANGE;
	if (set->count == SMTP_EHLO_LINES_MAX || line.len > SMTP_EHLO_TEXT_MAX - set->text_len)
		return CSSL_E_FULL;
	const struct smtp_ehlo_line row = {
		.cap = (uint8_t)find_cap((struct smtp_span){ line.at, keyword }),
		.len = (uint16_t)line.len,
		.keyword_len = (uint16_t)keyword,
	};
	smtp_ehlo_append(set, row, line.at);
	return 0;
}

void smtp_ehlo_note(struct smtp_ehlo *set, const struct smtp_reply_line *line)
{
	if (line->number == 1)
		smtp_ehlo_clear(set);
	else if (!line->is_cut)
		smtp_ehlo_add(set, line->text);
}

static struct smtp_span line_text(const struct smtp_ehlo *set, unsigned i)
{
	return (struct smtp_span){ set->text + set->lines[i].at, set->lines[i].len };
}

struct smtp_span smtp_ehlo_params(const struct smtp_ehlo *set, enum smtp_cap cap)
{
	for (unsigned i = 0; i < set->count; i++) {
		const struct smtp_ehlo_line *row = &set->lines[i];
		if (row->cap != cap || row->len == row->keyword_len)
			continue;
		size_t skip = row->keyword_len + 1u;
		return smtp_span_trim((struct smtp_span){ set->text + row->at + skip, row->len - skip });
	}
	return (struct smtp_span){ set->text, 0 };
}

uint64_t smtp_ehlo_size(const struct smtp_ehlo *set)
{
	uint64_t size = 0;
	struct smtp_span params = smtp_ehlo_params(set, SMTP_CAP_SIZE);
	smtp_span_number(smtp_span_word(&params), UINT64_MAX, &size);
	return size;
}

bool smtp_ehlo_lists(const struct smtp_ehlo *set, enum smtp_cap cap, const char *word)
{
	struct smtp_span rest = smtp_ehlo_params(set, cap);
	while (rest.len > 0)
		if (smtp_span_is(smtp_span_word(&rest), word))
			return true;
	return false;
}

void smtp_ehlo_keep(struct smtp_ehlo *set, uint32_t keep)
{
	const unsigned count = set->count;
	if (!(keep & set->has & SMTP_CAP_BIT(SMTP_CAP_CHUNKING)))
		keep &= ~SMTP_CAP_BIT(SMTP_CAP_BINARYMIME);
	smtp_ehlo_clear(set);
	for (unsigned i = 0; i < count; i++) {
		const struct smtp_ehlo_line row = set->lines[i];
		if (keep & SMTP_CAP_BIT(row.cap))
			smtp_ehlo_append(set, row, set->text + row.at);
	}
}

static bool has_line(const struct smtp_ehlo *set, struct smtp_span line)
{
	for (unsigned i = 0; i < set->count; i++)
		if (smtp_span_equal(line_text(set, i), line))
			return true;
	return false;
}

/* The line of both, or a line without text. */
static struct smtp_span line_of_both(const struct smtp_ehlo *all, unsigned i, const struct smtp_ehlo *other)
{
	const struct smtp_ehlo_line *row = &all->lines[i];
	const uint64_t size = smtp_ehlo_size(all), other_size = smtp_ehlo_size(other);
	const struct smtp_span none = { all->text, 0 };
	if (!(other->has & SMTP_CAP_BIT(row->cap)))
		return none;
	if (row->cap >= SMTP_CAP_OTHER)
		return has_line(other, line_text(all, i)) ? line_text(all, i) : none;
	for (unsigned k = 0; row->cap == SMTP_CAP_SIZE && k < other->count; k++)
		if (other->lines[k].cap == SMTP_CAP_SIZE && other_size > 0 && (size == 0 || other_size < size))
			return line_text(other, k);
	return line_text(all, i);
}

void smtp_ehlo_narrow(struct smtp_ehlo *set, const struct smtp_ehlo *other)
{
	const struct smtp_ehlo all = *set;
	smtp_ehlo_clear(set);
	for (unsigned i = 0; i < all.count; i++) {
		const struct smtp_span line = line_of_both(&all, i, other);
		if (line.len > 0)
			smtp_ehlo_add(set, line);
	}
}

void smtp_ehlo_write(struct wire_writer *w, const char *name, const struct smtp_ehlo *set)
{
	smtp_word_write(w, set->count ? "250-" : "250 ");
	smtp_text_write(w, smtp_span_of(name));
	for (unsigned i = 0; i < set->count; i++) {
		smtp_word_write(w, i + 1 == set->count ? "\r\n250 " : "\r\n250-");
		smtp_text_write(w, line_text(set, i));
	}
	smtp_word_write(w, "\r\n");
}
