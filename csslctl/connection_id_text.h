/* connection_id_text.h: connection ids as an operator types and reads them: abbreviated. */
#ifndef CSSL_CSSLCTL_CONNECTION_ID_TEXT_H
#define CSSL_CSSLCTL_CONNECTION_ID_TEXT_H

#include "proto/sess_obj.h"

#define ID_DIGITS     (2 * CONNECTION_ID_LEN)
#define ID_DIGITS_MIN 4u  /* a beginning of an id has at least so many */
#define ID_SHOWN      12u /* in tables */

/* 1 when @text is an id or the beginning of one, else 0. */
int id_is_beginning(const char *text);

/* The highest id below all ids that begin with @beginning, so that the page "after" it starts with those. 0. 1: there
 * is none, ask for the first page. */
int id_before(const char *beginning, char out[static ID_DIGITS + 1]);

#endif
