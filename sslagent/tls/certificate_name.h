/* certificate_name.h: the common name of a client's certificate, for the PROXY header towards a backend. */
#ifndef CSSL_SSLAGENT_CERTIFICATE_NAME_H
#define CSSL_SSLAGENT_CERTIFICATE_NAME_H

#include <stddef.h>
#include <stdint.h>

/* UTF-8, terminated, of at most @cap bytes. 0, or CSSL_E_NOT_FOUND: no certificate, no name, or one with a NUL in it.
 */
int certificate_common_name(const uint8_t *der, size_t len, char *out, size_t cap);

#endif
