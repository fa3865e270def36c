/* place.h: finds the cluster's control API by the command line and the environment. */
#pragma once

#include "csslctl/command.h"

#define PLACE_ERROR_MAX 1024u

struct place {
	char *socket;    /* owned; NULL: use @url */
	const char *url; /* http or https, of the command line */
	const char *token_file, *ca_file, *certificate_file, *key_file;
};

/* @folder: $CSSL_DIR or NULL. 0; CSSL_E_CONFIG: the command line names none, or several; CSSL_E_NOT_FOUND: there is no
 * cluster. @error is a sentence with the remedy. */
int place_find(const struct invocation *in, const char *folder, struct place *out, char error[static PLACE_ERROR_MAX]);
void place_clear(struct place *p);
