/* text.h: text from elsewhere (a client may offer any server name) made fit for a terminal, and its width there. The
 * locale's LC_CTYPE is a UTF-8 one (text_locale()). */
#ifndef CSSL_CSSLCTL_TEXT_H
#define CSSL_CSSLCTL_TEXT_H

#include <stddef.h>

/* Once per process, whatever the environment says: the API speaks UTF-8. */
void text_locale(void);

/* In place: control characters and what is no UTF-8 become '?'. Returns the columns that @text takes. */
unsigned text_clean(char *text);

#endif
