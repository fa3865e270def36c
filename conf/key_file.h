/* key_file.h: files that hold secrets, and who else can read them. */
#ifndef CSSL_CONF_KEY_FILE_H
#define CSSL_CONF_KEY_FILE_H

#include <stddef.h>

enum key_file_kind {
	KEY_FILE_RING, /* link.key, agents.key: its owner's alone */
	KEY_FILE_PEM,  /* private key of a certificate: its group may read it */
};

/* Open a file of keys: its descriptor. Missing, no regular file, or open to others: CSSL_E_CONFIG, and @why has what
 * was found, what was expected and the remedy. */
int key_file_open(const char *path, enum key_file_kind kind, char *why, size_t why_cap);

#endif
