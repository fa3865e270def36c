/* params.c: one check per kind of value. */
#include "smtp/params.h"

#include <string.h>

#include "proto/error.h"
#include "smtp/tx_name.h"

#define ENVELOPE_ID_MAX 100u  /* RFC 3461 4.4 */
#define ORIGINAL_MAX    500u  /* RFC 3461 4.2 */
#define XTEXT_MAX       1000u /* no line is longer */

static bool is_nothing(struct smtp_span value, struct smtp_params *out)
{
	return value.at == NULL;
}

static bool is_text(struct smtp_span value, struct smtp_params *out)
{
	return value.len > 0;
}

/* RFC 1870 6: 1*20DIGIT. A number too large for 64 bits is refused. */
static bool is_number(struct smtp_span value, struct smtp_params *out)
{
	return value.len <= 20 && smtp_span_number(value, UINT64_MAX, &out->size) == 0;
}

static bool is_one_of(struct smtp_span value, const char *const *words)
{
	while (*words && !smtp_span_is(value, *words))
		words++;
	return *words != NULL;
}

static bool is_body(struct smtp_span value, struct smtp_params *out)
{
	return is_one_of(value, (const char *const[]){ "7BIT", "8BITMIME", "BINARYMIME", NULL });
}

static bool is_ret(struct smtp_span value, struct smtp_params *out)
{
	return is_one_of(value, (const char *const[]){ "FULL", "HDRS", NULL });
}

static bool is_xtext(struct smtp_span value, struct smtp_params *out)
{
	uint8_t plain[XTEXT_MAX];
	struct wire_writer w = wire_writer(plain, sizeof plain);
	return value.len > 0 && smtp_xtext_read(&w, value) == 0 && wire_writer_len(&w) >= 0;
}

static bool is_envelope_id(struct smtp_span value, struct smtp_params *out)
{
	return value.len <= ENVELOPE_ID_MAX && is_xtext(value, out);
}

/* NEVER alone, or a list of the others. */
static bool is_notify(struct smtp_span value, struct smtp_params *out)
{
	if (smtp_span_is(value, "NEVER"))
		return true;
	if (value.len == 0 || value.at[value.len - 1] == ',')
		return false;
	while (value.len > 0) {
		struct smtp_span word = smtp_span_until(&value, ',');
		if (!is_one_of(word, (const char *const[]){ "SUCCESS", "FAILURE", "DELAY", NULL }))
			return false;
	}
	return true;
}

/* RFC 3461 4.2: an address type, ";", xtext. RFC 6533 3 adds utf-8, whose addresses are no xtext. */
static bool is_original(struct smtp_span value, struct smtp_params *out)
{
	size_t len = value.len;
	struct smtp_span type = smtp_span_until(&value, ';');
	if (type.len == 0 || value.len == 0 || len > ORIGINAL_MAX)
		return false;
	return smtp_span_is(type, "utf-8") ? smtp_span_is_utf8(value) : is_xtext(value, out);
}

static bool is_tx_name(struct smtp_span value, struct smtp_params *out)
{
	struct smtp_tx_name name;
	return smtp_tx_name_parse(value, &name) == 0;
}

static const struct param_row {
	const char *keyword;
	enum smtp_verb verb;
	bool (*is_good)(struct smtp_span value, struct smtp_params *out);
	enum smtp_cap cap;
} rows[SMTP_PARAM_COUNT] = {
#define X(name, keyword, verb, check, cap)                                                                             \
	[SMTP_PARAM_##name] = { keyword, SMTP_VERB_##verb, is_##check, SMTP_CAP_##cap },
	SMTP_PARAMS(X)
#undef X
};

/* esmtp-value has no "=", space or control character. */
int smtp_param_next(struct smtp_span *rest, struct smtp_param *out)
{
	struct smtp_span word = smtp_span_word(rest);
	if (word.len == 0)
		return SMTP_PARAMS_END;
	bool has_value = memchr(word.at, '=', word.len) != NULL;
	out->keyword = smtp_span_until(&word, '=');
	out->value = has_value ? word : (struct smtp_span){ NULL, 0 };
	const size_t keyword_len = smtp_span_keyword(out->keyword);
	if (keyword_len == 0 || keyword_len < out->keyword.len || (has_value && word.len == 0))
		return CSSL_E_RANGE;
	return smtp_span_is_utf8(word) && !(word.len && memchr(word.at, '=', word.len)) ? 0 : CSSL_E_RANGE;
}

/* 7BIT is what is meant without the parameter. */
static uint32_t extension_of_body(struct smtp_span value)
{
	if (smtp_span_is(value, "BINARYMIME"))
		return SMTP_CAP_BIT(SMTP_CAP_BINARYMIME);
	return smtp_span_is(value, "7BIT") ? 0 : SMTP_CAP_BIT(SMTP_CAP_8BITMIME);
}

static uint32_t extension_of(const struct smtp_param *param)
{
	unsigned kind = 0;
	while (kind < SMTP_PARAM_COUNT && !smtp_span_is(param->keyword, rows[kind].keyword))
		kind++;
	if (kind == SMTP_PARAM_COUNT) /* the parameter of PRDR has the name of the extension */
		return smtp_cap_is_foreign(param->keyword) ? SMTP_CAP_BIT(SMTP_CAP_FOREIGN) : 0;
	return kind == SMTP_PARAM_BODY ? extension_of_body(param->value) : SMTP_CAP_BIT(rows[kind].cap);
}

uint32_t smtp_params_extensions(const struct smtp_command *command)
{
	struct smtp_span rest = command->params;
	struct smtp_param param;
	uint32_t extensions = 0;
	while (smtp_param_next(&rest, &param) != SMTP_PARAMS_END)
		extensions |= extension_of(&param);
	return extensions;
}

static unsigned find_row(enum smtp_verb verb, struct smtp_span keyword)
{
	unsigned kind = 0;
	while (kind < SMTP_PARAM_COUNT && (rows[kind].verb != verb || !smtp_span_is(keyword, rows[kind].keyword)))
		kind++;
	return kind;
}

enum smtp_own smtp_params_read(enum smtp_verb verb, struct smtp_span rest, struct smtp_params *out)
{
	struct smtp_param param;
	int r;
	memset(out, 0, sizeof *out);
	while ((r = smtp_param_next(&rest, &param)) == 0) {
		unsigned kind = find_row(verb, param.keyword);
		if (kind == SMTP_PARAM_COUNT)
			return SMTP_OWN_UNKNOWN_PARAMETER;
		if (smtp_params_has(out, (enum smtp_param_kind)kind))
			return SMTP_OWN_BAD_PARAMETER;
		if (!rows[kind].is_good(param.value, out))
			return kind == SMTP_PARAM_BODY || kind == SMTP_PARAM_RET ? SMTP_OWN_UNKNOWN_PARAMETER
										 : SMTP_OWN_BAD_PARAMETER;
		out->has |= 1u << kind;
		out->value[kind] = param.value;
	}
	return r < 0 ? SMTP_OWN_BAD_PARAMETER : SMTP_OWN_NONE;
}

/* --- xtext --- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int smtp_xtext_read(struct wire_writer *w, struct smtp_span xtext)
{
	if (!smtp_span_is_graphic(xtext, "="))
		return CSSL_E_RANGE;
	for (size_t i = 0; i < xtext.len; i++) {
		if (xtext.at[i] != '+') {
			wire_put_u8(w, (uint8_t)xtext.at[i]);
			continue;
		}
		int high = i + 2 < xtext.len ? hex_value(xtext.at[i + 1]) : -1;
		int low = i + 2 < xtext.len ? hex_value(xtext.at[i + 2]) : -1;
		if (high < 0 || low < 0)
			return CSSL_E_RANGE;
		wire_put_u8(w, (uint8_t)(high << 4 | low));
		i += 2;
	}
	return 0;
}
