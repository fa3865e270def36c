/* option_table.h: a command line as one table, for the parser and for --help.
 *
 *   static const struct option_row rows[] = {
 *           { .help = "How much" },                                           a heading
 *           OPTION_NUMBER('s', "sessions", "N", struct x, sessions, 1, 1e6, 1, "at a time"),
 */
#pragma once

#include <stddef.h>

#define OPTION_ROWS_MAX 64u

struct option_row {
	char letter;              /* 0: none */
	const char *name;         /* NULL: a heading */
	const char *value, *help; /* value NULL: the option takes none */
	/* 0, or negative: a bad value. */
	int (*set)(void *options, const struct option_row *row, const char *value);
	size_t at;       /* offset of the member in the options */
	double min, max; /* of a number */
	double unit;     /* a number is multiplied by this and then stored; a flag stores it as its value */
};

/* Stores a uint64_t. The value has to be whole where the unit is 1. */
int option_set_number(void *options, const struct option_row *row, const char *value);
/* Stores a double. */
int option_set_real(void *options, const struct option_row *row, const char *value);
/* Stores a const char *: not empty, one line. */
int option_set_text(void *options, const struct option_row *row, const char *value);
/* Stores an unsigned. */
int option_set_flag(void *options, const struct option_row *row, const char *value);
/* Stores an unsigned: which of the words between '|' in row->value it is, and the unit added. */
int option_set_word(void *options, const struct option_row *row, const char *value);

static inline void *option_member(void *options, const struct option_row *row)
{
	return (char *)options + row->at;
}

#define OPTION_NUMBER(letter, name, value, type, member, min, max, unit, help)                                         \
	{                                                                                                              \
		letter, name, value, help, option_set_number, offsetof(type, member), min, max, unit                   \
	}
#define OPTION_TEXT(letter, name, value, type, member, help)                                                           \
	{                                                                                                              \
		letter, name, value, help, option_set_text, offsetof(type, member)                                     \
	}
#define OPTION_FLAG(letter, name, type, member, word, help)                                                            \
	{                                                                                                              \
		letter, name, NULL, help, option_set_flag, offsetof(type, member), 0, 0, word                          \
	}

#define OPTION_WORD(letter, name, words, type, member, help)                                                           \
	{                                                                                                              \
		letter, name, words, help, option_set_word, offsetof(type, member)                                     \
	}

struct option_command {
	const char *name;
	const char *about, *end; /* what --help says before the rows and behind them; @end may be NULL */
	const struct option_row *rows;
	unsigned count;
	enum { OPTIONS_ONLY, OPTIONS_AND_WORDS } takes;
};

/* What is not PARSED is the exit status. */
enum option_parse { OPTIONS_PARSED = -1, OPTIONS_HELP = 0, OPTIONS_BAD = 2 };

/* Prints --help on standard output, and complains on standard error. Afterwards optind is the first word that is not an
 * option. */
enum option_parse option_table_parse(const struct option_command *c, int argc, char **argv, void *options);
