/* command.c: the verb is looked up in the table of command.h; a reader for each kind of argument does the rest. */
#include "smtp/command.h"

#include <string.h>

#include "proto/error.h"
#include "smtp/line.h"

struct verb_row {
	const char *name;
	enum smtp_argument argument;
	enum smtp_grouping grouping;
};

static const struct verb_row verbs[SMTP_VERB_COUNT] = { [SMTP_VERB_UNKNOWN] = { "?", ARGUMENT_OPTIONAL, GROUP_LAST },
#define X(name, argument, grouping) [SMTP_VERB_##name] = { #name, argument, grouping },
	SMTP_VERBS(X)
#undef X
};

enum smtp_grouping smtp_verb_grouping(enum smtp_verb verb)
{
	return verbs[verb < SMTP_VERB_COUNT ? verb : SMTP_VERB_UNKNOWN].grouping;
}

static enum smtp_verb find_verb(struct smtp_span word)
{
	for (unsigned verb = SMTP_VERB_UNKNOWN + 1; verb < SMTP_VERB_COUNT; verb++)
		if (smtp_span_is(word, verbs[verb].name))
			return (enum smtp_verb)verb;
	return SMTP_VERB_UNKNOWN;
}

bool smtp_verb_is_new(struct smtp_span word)
{
	if (word.len == 0 || smtp_span_keyword(word) < word.len)
		return false;
	for (unsigned verb = SMTP_VERB_UNKNOWN + 1; verb < SMTP_VERB_COUNT; verb++) {
		const size_t len = strlen(verbs[verb].name);
		if (len <= word.len && smtp_span_is((struct smtp_span){ word.at, len }, verbs[verb].name))
			return false;
	}
	return true;
}

static enum smtp_own read_nothing(unsigned flags, struct smtp_command *out)
{
	/* An argument of STARTTLS is refused in every case: RFC 3207 4. */
	bool overlooked = (flags & SMTP_PARSE_LENIENT) && out->verb != SMTP_VERB_STARTTLS;
	return out->argument.len == 0 || overlooked ? SMTP_OWN_NONE : SMTP_OWN_NO_ARGUMENT;
}

static enum smtp_own read_needed(unsigned flags, struct smtp_command *out)
{
	bool overlooked = (flags & SMTP_PARSE_LENIENT) && out->verb == SMTP_VERB_VRFY;
	return out->argument.len > 0 || overlooked ? SMTP_OWN_NONE : SMTP_OWN_SYNTAX;
}

/* A client greets before it knows of SMTPUTF8 (RFC 6531 3.7.1). */
static enum smtp_own smtp_command_read_name(unsigned flags, struct smtp_command *out)
{
	return smtp_domain_is_greeting(out->argument, flags & ~(unsigned)SMTP_PARSE_UTF8) ? SMTP_OWN_NONE
											  : SMTP_OWN_BAD_NAME;
}

/* Something in brackets that is no path to us. With quotes, two readers may see its end at two places, so all words
 * behind the colon count as parameters. */
static enum smtp_own leave_to_server(struct smtp_span rest, enum smtp_own bad_path, struct smtp_command *out)
{
	struct smtp_span behind = rest;
	const bool has_end = memchr(rest.at, '>', rest.len) != NULL;
	smtp_span_until(&behind, '>');
	if (!has_end || rest.at[0] != '<' || (behind.len > 0 && behind.at[0] != ' ') || !smtp_span_is_utf8(rest))
		return bad_path;
	memset(&out->path, 0, sizeof out->path);
	out->params = rest;
	return SMTP_OWN_NONE;
}

/* FROM: or TO:, a path, and parameters behind a space. */
static enum smtp_own read_path(const char *keyword, enum smtp_own bad_path, unsigned flags, struct smtp_command *out)
{
	struct smtp_span rest = out->argument;
	if (!memchr(rest.at, ':', rest.len))
		return SMTP_OWN_SYNTAX;
	struct smtp_span word = smtp_span_until(&rest, ':');
	if (flags & SMTP_PARSE_LENIENT) {
		word = smtp_span_trim(word);
		rest = smtp_span_trim(rest);
	}
	if (!smtp_span_is(word, keyword))
		return SMTP_OWN_SYNTAX;
	const struct smtp_span all = rest;
	if (smtp_path_take(&rest, flags, &out->path) < 0 || (rest.len > 0 && rest.at[0] != ' ' && rest.at[0] != '\t'))
		return flags & SMTP_PARSE_JUDGED ? leave_to_server(all, bad_path, out) : bad_path;
	out->params = smtp_span_trim(rest);
	return SMTP_OWN_NONE;
}

static enum smtp_own read_from(unsigned flags, struct smtp_command *out)
{
	enum smtp_own refusal = read_path("FROM", SMTP_OWN_BAD_SENDER, flags, out);
	return refusal || out->path.kind != SMTP_PATH_POSTMASTER || (flags & SMTP_PARSE_LENIENT) ? refusal
												 : SMTP_OWN_BAD_SENDER;
}

static enum smtp_own read_to(unsigned flags, struct smtp_command *out)
{
	enum smtp_own refusal = read_path("TO", SMTP_OWN_BAD_RECIPIENT, flags, out);
	const bool is_null = !refusal && out->path.kind == SMTP_PATH_NULL && !(flags & SMTP_PARSE_JUDGED);
	return is_null ? SMTP_OWN_BAD_RECIPIENT : refusal;
}

/* RFC 3030 2: chunk-size is 1*DIGIT; LAST in any case of letters. */
static enum smtp_own read_chunk(unsigned flags, struct smtp_command *out)
{
	struct smtp_span rest = out->argument, size = smtp_span_word(&rest);
	out->chunk_is_last = smtp_span_is(rest, "LAST");
	if (rest.len > 0 && !out->chunk_is_last)
		return SMTP_OWN_BAD_CHUNK;
	return smtp_span_number(size, INT64_MAX, &out->chunk_len) == 0 ? SMTP_OWN_NONE : SMTP_OWN_BAD_CHUNK;
}

static enum smtp_own read_argument(unsigned flags, struct smtp_command *out)
{
	switch (verbs[out->verb].argument) {
	case ARGUMENT_NONE: return read_nothing(flags, out);
	case ARGUMENT_NEEDED: return read_needed(flags, out);
	case ARGUMENT_NAME: return smtp_command_read_name(flags, out);
	case ARGUMENT_FROM: return read_from(flags, out);
	case ARGUMENT_TO: return read_to(flags, out);
	case ARGUMENT_CHUNK: return read_chunk(flags, out);
	default: return SMTP_OWN_NONE;
	}
}

enum smtp_own smtp_command_parse(struct smtp_span text, unsigned flags, struct smtp_command *out)
{
	memset(out, 0, sizeof *out);
	out->argument = text;
	out->word = smtp_span_word(&out->argument);
	out->argument = smtp_span_trim(out->argument);
	out->verb = find_verb(out->word);
	return out->verb == SMTP_VERB_UNKNOWN ? SMTP_OWN_UNKNOWN_COMMAND : read_argument(flags, out);
}

enum smtp_own smtp_command_of_line(struct smtp_span text, unsigned flaws, unsigned flags, struct smtp_command *out)
{
	enum smtp_own refusal = smtp_command_parse(text, flags, out);
	const bool is_greeting = out->verb == SMTP_VERB_EHLO || out->verb == SMTP_VERB_HELO;
	const bool has_8bit = flags & SMTP_PARSE_UTF8 || (is_greeting && flags & SMTP_PARSE_LENIENT);
	const unsigned bad_bytes = SMTP_LINE_NUL | SMTP_LINE_CONTROL | (has_8bit ? 0 : SMTP_LINE_8BIT);
	if (flaws & SMTP_LINE_TOO_LONG)
		return SMTP_OWN_LINE_TOO_LONG;
	if (flaws & (SMTP_LINE_BARE_LF | SMTP_LINE_BARE_CR))
		return SMTP_OWN_BAD_LINE_END;
	return flaws & bad_bytes ? SMTP_OWN_BAD_BYTES : refusal;
}
