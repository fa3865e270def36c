/* text.h: makes text from outside safe for a terminal (a client may offer any server name), and measures its width.
 * Needs a locale with UTF-8 (text_locale()). */
#ifndef CSSL_CSSLCTL_TEXT_H
#define CSSL_CSSLCTL_TEXT_H

#include <stddef.h>

/* Set a locale with UTF-8, whatever the environment says, because the API uses UTF-8. Once in a process. */
void text_locale(void);

/* Replace control characters, those that turn the direction of text (UAX #9), and bytes that are not UTF-8 by '?', in
 * place. Returns the width of @text in columns. */
unsigned text_clean(char *text);

#endif
