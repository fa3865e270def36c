/* key_file.h: opens files of secrets, and refuses those that others can read. */
#pragma once

#include <stddef.h>

enum key_file_kind {
	KEY_FILE_RING,   /* link.key, agents.key: only the owner may read it */
	KEY_FILE_PEM,    /* private key of a certificate: the group may read it too */
	KEY_FILE_WORD,   /* a password: only the owner may read it */
	KEY_FILE_PUBLIC, /* certificates, CRLs: no secret */
};

/* Open the file. Returns its descriptor, or CSSL_E_CONFIG if it is missing, not a regular file, or open to
 * others; @why then tells what was found, what was expected, and the remedy. */
int key_file_open(const char *path, enum key_file_kind kind, char *why, size_t why_cap);
