/* form.h: what can be told of an argument without asking the cluster: by what usage calls it, its form. */
#ifndef CSSL_CSSLCTL_FORM_H
#define CSSL_CSSLCTL_FORM_H

struct form {
	const char *placeholder; /* of options.h and commands.c */
	int (*fits)(const char *text);
	const char *what, *expected; /* "'zz' is no session id: 64 hexadecimal digits" */
};

/* NULL: anything goes, as far as can be told here. */
const struct form *form_of(const char *placeholder);

#endif
