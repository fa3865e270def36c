/* arguments.c: separates options from words, finds the command in the words, and checks all against the table. */
#include "csslctl/arguments.h"

#include <stdarg.h>
#include <string.h>

#include "csslctl/form.h"
#include "proto/error.h"

#define WORDS_MAX 8u

struct words {
	const char *at[WORDS_MAX];
	unsigned count;
};

__attribute__((format(printf, 2, 3))) static int arguments_fail(char *error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, ARGUMENTS_ERROR_MAX, format, arguments);
	va_end(arguments);
	return CSSL_E_CONFIG;
}

static int word_add(struct words *w, const char *word, char *error)
{
	if (w->count == WORDS_MAX)
		return arguments_fail(error, "too many words: '%.80s' and what follows", word);
	w->at[w->count++] = word;
	return 0;
}

/* @text: the text after the dashes. *next: the next argument; it moves on when that is the value. */
static int option_add(struct invocation *in, const char *text, char *const **next, char *error)
{
	const size_t len = strcspn(text, "=");
	const enum option option = option_find(text, len);

	if (option == OPTION_NONE)
		return arguments_fail(error, "no option --%.80s; `csslctl help` lists them", text);
	const struct option_row *row = option_row(option);
	const char *value = text[len] == '=' ? text + len + 1 : NULL;
	if (in->options[option])
		return arguments_fail(error, "--%s stands there twice", row->name);
	if (!row->value && value)
		return arguments_fail(error, "--%s takes no value", row->name);
	if (row->value && !value && !(value = **next))
		return arguments_fail(error, "--%s needs a value: --%s %s", row->name, row->name, row->value);
	if (row->value && text[len] != '=')
		(*next)++;
	/* a flag has a text, too: whoever asks for an option only looks whether there is one */
	in->options[option] = row->value ? value : "";
	return 0;
}

static int tell_apart(char *const *next, struct invocation *in, struct words *words, char *error)
{
	enum { OPTIONS_TOO, WORDS_ONLY } what = OPTIONS_TOO;
	int result = 0;

	while (*next && result == 0) {
		const char *text = *next++;
		/* "-5" is a number, and no option begins with a digit */
		if (what == WORDS_ONLY || text[0] != '-' || text[1] == '\0' || (text[1] >= '0' && text[1] <= '9'))
			result = word_add(words, text, error);
		else if (strcmp(text, "--") == 0)
			what = WORDS_ONLY;
		else if (strcmp(text, "-h") == 0)
			in->options[OPTION_HELP] = "";
		else if (text[1] != '-')
			result = arguments_fail(error, "no option %.80s; `csslctl help` lists them", text);
		else
			result = option_add(in, text + 2, &next, error);
	}
	return result;
}

/* How many words name the command; takes the longest name. */
static unsigned command_of(const struct words *w, const struct command **out)
{
	char two[80];
	unsigned taken = 0;

	*out = NULL;
	if (w->count > 1) {
		snprintf(two, sizeof two, "%s %s", w->at[0], w->at[1]);
		if ((*out = command_find(two, strlen(two))))
			taken = 2;
	}
	if (!*out && w->count > 0 && (*out = command_find(w->at[0], strlen(w->at[0]))))
		taken = 1;
	return taken;
}

/* Do commands of two words begin with @word? */
static bool is_group(const char *word)
{
	const size_t len = strlen(word);
	size_t count;
	const struct command *all = commands(&count);

	for (size_t i = 0; i < count; i++)
		if (strncmp(all[i].name, word, len) == 0 && all[i].name[len] == ' ')
			return true;
	return false;
}

/* "sessions" alone, or with a wrong second word. */
static int arguments_unknown(const struct words *w, char *error)
{
	const char *first = w->at[0], *second = w->count > 1 ? w->at[1] : "";
	char names[160] = "", both[80];
	size_t count, len = 0;
	const struct command *all = commands(&count);

	/* the first word of a group is no slip of the finger: its commands help more than one that looks like it */
	for (size_t i = 0; i < count; i++) {
		const size_t head = strlen(first);
		if (strncmp(all[i].name, first, head) == 0 && all[i].name[head] == ' ' && len < sizeof names)
			len += (size_t)snprintf(
				names + len, sizeof names - len, "%s`csslctl %s`", len ? ", " : "", all[i].name);
	}
	if (len > 0)
		return arguments_fail(error, "'%.40s%s%.40s'%s is no command; there is %s", first, *second ? " " : "",
			second, *second ? "" : " alone", names);
	snprintf(both, sizeof both, "%s %s", first, second);
	const char *like = *second ? command_like(both) : NULL;
	if (!like)
		like = command_like(first);
	if (like)
		return arguments_fail(error, "no command '%.80s'; did you mean `csslctl %s`?", first, like);
	return arguments_fail(error, "no command '%.80s'; `csslctl help` lists them", first);
}

static int operands_take(struct invocation *in, const char *const *at, unsigned count, char *error)
{
	const struct command *c = in->command;
	unsigned given = 0;

	for (; given < OPERANDS_MAX && given < count && c->operands[given].name; given++) {
		if (*at[given] == '\0')
			return arguments_fail(error, "%s: %s is empty", c->name, c->operands[given].name);
		in->operands[given] = at[given];
	}
	if (given < count)
		return arguments_fail(error, "%s: '%.80s' is too much; `csslctl help %s`", c->name, at[given], c->name);
	if (given < OPERANDS_MAX && c->operands[given].name && c->operands[given].presence == OPERAND_REQUIRED &&
		!in->options[OPTION_HELP])
		return arguments_fail(
			error, "%s: %s is missing; `csslctl help %s`", c->name, c->operands[given].name, c->name);
	return 0;
}

static int options_fit(const struct invocation *in, char *error)
{
	for (enum option o = OPTION_NONE + 1; o < OPTION_COUNT; o++)
		if (in->options[o] && !command_takes(in->command, o))
			return arguments_fail(error, "%s takes no --%s; `csslctl help %s`", in->command->name,
				option_row(o)->name, in->command->name);
	return 0;
}

/* @before: the part of the command line that @text belongs to, such as "--tls: ". */
static int form_fits(
	const struct command *c, const char *placeholder, const char *before, const char *text, char *error)
{
	const struct form *form = text && placeholder ? form_of(placeholder) : NULL;

	if (!form || form->fits(text))
		return 0;
	return arguments_fail(error, "%s: %s'%.80s' is no %s: %s; `csslctl help %s`", c->name, before, text, form->what,
		form->expected, c->name);
}

static int forms_fit(const struct invocation *in, char *error)
{
	const struct command *c = in->command;
	char before[32];
	int r = 0;

	for (unsigned i = 0; r == 0 && i < OPERANDS_MAX && c->operands[i].name; i++)
		r = form_fits(c, c->operands[i].name, "", in->operands[i], error);
	for (enum option o = OPTION_NONE + 1; r == 0 && o < OPTION_COUNT; o++) {
		snprintf(before, sizeof before, "--%s: ", option_row(o)->name);
		r = form_fits(c, option_row(o)->value, before, in->options[o], error);
	}
	return r;
}

int arguments_parse(int argc, char *const *argv, struct invocation *in, char error[static ARGUMENTS_ERROR_MAX])
{
	struct words words = { .count = 0 };

	memset(in, 0, sizeof *in);
	error[0] = '\0';
	if (argc > 0 && tell_apart(argv + 1, in, &words, error) < 0)
		return CSSL_E_CONFIG;
	const unsigned taken = command_of(&words, &in->command);
	if (!in->command && words.count == 1 && in->options[OPTION_HELP] && is_group(words.at[0])) {
		in->options[OPTION_HELP] = NULL; /* `sessions --help` is `help sessions` */
		in->command = command_find("help", strlen("help"));
		in->operands[0] = words.at[0];
		return 0;
	}
	if (!in->command)
		return words.count > 0 ? arguments_unknown(&words, error) : 0;
	int result = operands_take(in, words.at + taken, words.count - taken, error);
	if (result == 0)
		result = options_fit(in, error);
	return result < 0 || in->options[OPTION_HELP] ? result : forms_fit(in, error);
}
