/* form.h: checks the form of an argument without asking the cluster. The form follows from the argument's name in the
 * usage. */
#ifndef CSSL_CSSLCTL_FORM_H
#define CSSL_CSSLCTL_FORM_H

struct form {
	const char *placeholder; /* of options.h and commands.c */
	int (*fits)(const char *text);
	const char *what, *expected; /* "'zz' is no session id: 64 hexadecimal digits" */
};

/* NULL: any text has the right form. */
const struct form *form_of(const char *placeholder);

#endif
