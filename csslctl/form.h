/* form.h: checks the form of an argument without asking the cluster. The form follows from the argument's name in the
 * usage. */
#pragma once

#include <stdbool.h>

#include "proto/ids.h"

struct form {
	const char *placeholder; /* of command.h and commands.c */
	bool (*fits)(const char *text);
	const char *what, *expected; /* "'zz' is no session id: 64 hexadecimal digits" */
};

/* NULL: any text has the right form. */
const struct form *form_of(const char *placeholder);

/* --- connection ids as an operator types and reads them: abbreviated --- */

#define ID_DIGITS     (2 * CONNECTION_ID_LEN)
#define ID_DIGITS_MIN 4u  /* a beginning of an id has at least so many */
#define ID_SHOWN      12u /* in tables */

/* Is @text an id or the beginning of one? */
bool id_is_beginning(const char *text);

/* The highest id below all ids that begin with @beginning, so that the page "after" it starts with those. true: there
 * is none, ask for the first page. */
bool id_before(const char *beginning, char out[static ID_DIGITS + 1]);
